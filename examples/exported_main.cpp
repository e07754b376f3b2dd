// exported_main.cpp: the file that export.c wrote, used from C++ by several threads at once:
//
//     cc -O2 -march=native -c FOLDER/ring.c
//     c++ -std=c++17 -O2 -pthread -I FOLDER exported_main.cpp ring.o -lm -o ring && ./ring
#include "points.h"
#include "ring.h"
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

// What a call works in.  Each thread has its own; calls with nullptr would share the memory of ring.c.
struct Memory {
    alignas(64) unsigned char bytes[RING_MEMORY];
};

// Points of the list that the network places in the ring: every second one, from `first` on.
static void count(ring *model, const std::vector<float> &points, std::size_t first, int *inside)
{
    Memory memory;
    for (std::size_t i = first; 2 * i < points.size(); i += 2) {
        float p[2];
        ring_predict(model, memory.bytes, &points[2 * i], p);
        *inside += p[1] > 0.5f;
    }
}

int main()
{
    auto model = std::make_unique<ring>();
    ring_init(model.get());

    std::vector<float> points(POINTS * 2), all;
    std::vector<std::int32_t> labels(POINTS);
    unsigned state = 1;
    float cost = 0, wrong = 0;
    for (int step = 1; step <= 2000; step++) {
        draw_points(points.data(), labels.data(), &state);
        if (step > 100 && ring_train(model.get(), nullptr, points.data(), labels.data(), &cost, &wrong)) {
            return std::puts("an index was out of range"), 1;
        }
        all.insert(all.end(), points.begin(), points.end());
    }
    std::printf("step 2000  cost %.9g\n", static_cast<double>(cost));

    int inside[2] = {0, 0};                         // predictions only read the variables
    std::thread even(count, model.get(), std::cref(all), 0, &inside[0]),
        odd(count, model.get(), std::cref(all), 1, &inside[1]);
    even.join(), odd.join();
    std::printf("%d of %d points lie in the ring, says the network\n", inside[0] + inside[1], static_cast<int>(all.size() / 2));
    return 0;
}
