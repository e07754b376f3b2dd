"""The models of the suite export by PyTorch, eager, on one thread: predictions, and LeNet's training step."""
import torch

from exported import PREDICTIONS, lenet, predictor
from peer import floats, report, rng

torch.set_num_threads(1)
with torch.inference_mode():
    for case, make, shape in PREDICTIONS:
        net, x = predictor(make), torch.from_numpy(floats(*shape))
        report("export", case, lambda: net(x), "predict")
for size in (32, 500):
    net, x, t = lenet(), torch.from_numpy(floats(size, 1, 28, 28)), torch.from_numpy(rng.integers(0, 10, size))
    rule = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def step():
        y = net(x)
        cost = torch.nn.functional.cross_entropy(y, t)
        wrong = (y.argmax(1) != t).float().mean()
        cost.backward()
        rule.step()
        rule.zero_grad(set_to_none=True)
        return cost, wrong

    report("export", f"lenet b{size}", step, "train")
