"""linalg.py: writes tests/linalg_values.h, results of NumPy and SciPy for tests/t_linalg.c.

    python tests/linalg.py        needs numpy and scipy
"""
import os

import numpy as np
import scipy.linalg as sl
A=np.array([[2.,-1,0.5],[1,3,-2],[0.25,1.5,4]]); S=np.array([[4.,1,-2],[1,3,0.5],[-2,0.5,5]]); T=np.array([[1.,2,3],[4,5,6],[7,8,10],[-1,0.5,2]]); b=np.array([1.,-2,3])
def up(V, other=None, rows=False):
    V=V.copy(); o=None if other is None else other.copy()
    for j in range(V.shape[1]):
        c=V[:,j]; k=np.argmax(2*abs(c)>=abs(c).max())
        if c[k]<0:
            V[:,j]*=-1
            if o is not None and j<o.shape[0]: o[j]*=-1
    return V if other is None else (V,o)
out=[]
def row(f,v): out.append((f, np.atleast_1d(np.asarray(v,float)).ravel()))
row("cholesky(s)", np.linalg.cholesky(S))
row("cholesky(s, lower=False)", sl.cholesky(S))
row("solve(a, b)", np.linalg.solve(A,b))
row("solve(s, b, assume_a='pos')", np.linalg.solve(S,b))
row("matrix_inverse(a)", np.linalg.inv(A))
row("det(a)", np.linalg.det(A))
row("slogdet(-a)[0]", np.linalg.slogdet(-A)[0]); row("slogdet(-a)[1]", np.linalg.slogdet(-A)[1])
p,l,u=sl.lu(T)
row("lu(t)[0]",p);row("lu(t)[1]",l);row("lu(t)[2]",u)
for trans in (0,1):
    for lower in (False,True):
        for unit in (False,True):
            row(f"solve_triangular(a, b, trans={trans}, lower={lower}, unit_diagonal={unit})", sl.solve_triangular(A,b,trans=trans,lower=lower,unit_diagonal=unit))
q,r=np.linalg.qr(T); row("qr(t)[0]",q); row("qr(t)[1]",r)
q,r=np.linalg.qr(T,mode='complete'); row("qr(t, mode='complete')[0]",q); row("qr(t, mode='complete')[1]",r)
row("qr(t, mode='r')",np.linalg.qr(T,mode='r'))
q,r=np.linalg.qr(T.T); row("qr(t.T)[0]",q); row("qr(t.T)[1]",r)
w,v=np.linalg.eigh(S); row("eigh(s)[0]",w); row("eigh(s)[1]",up(v))
w,v=np.linalg.eigh(A,UPLO='U'); row("eigh(a, UPLO='U')[0]",w); row("eigvalsh(a)",np.linalg.eigvalsh(A))
u,s,vh=np.linalg.svd(T,full_matrices=False); u,vh=up(u,vh); row("svd(t, full_matrices=False)[0]",u); row("svdvals(t)",s); row("svd(t)[2]",vh)
u,s,vh=np.linalg.svd(T.T,full_matrices=False); u,vh=up(u,vh); row("svd(t.T)[0]",u); row("svd(t.T, full_matrices=False)[2]",vh)
B=np.array([[1.,2,0],[3,4,1],[0,1,-2]]); w,v=np.linalg.eig(B); i=np.argsort(w); row("eig(e)[0]",w[i]); row("eig(e)[1]",up(v[:,i])); row("eigvals(e)",np.sort(w))
row("pinv(t)",np.linalg.pinv(T)); x=np.linalg.lstsq(T,np.array([1.,0,2,-1]),rcond=None); row("lstsq(t, c)[0]",x[0]); row("lstsq(t, c)[1]",x[1]); row("lstsq(t, c)[3]",x[3])
row("matrix_rank(t)",np.linalg.matrix_rank(T))
row("matrix_power(a, 5)",np.linalg.matrix_power(A,5)); row("matrix_power(a, -3)",np.linalg.matrix_power(A,-3)); row("matrix_power(a, 0)",np.eye(3))
row("matrix_dot(t, a, s, b)",np.linalg.multi_dot([T,A,S,b])); row("matrix_dot(c, t, s)",np.linalg.multi_dot([np.array([1.,0,2,-1]),T,S]))
row("kron(a, t)[2, :4]",np.kron(A,T)[2,:4]); row("kron(b, a)",np.kron(b,A)); row("kron(c, b)",np.kron(np.array([1.,0,2,-1]),b))
for o in ("fro","nuc",2,-2,1,-1,np.inf,-np.inf): row(f"matrix_norm(t, ord='{o}')",np.linalg.norm(T,o))
row("trace(t)",np.trace(T)); row("trace(t, offset=-1)",np.trace(T,offset=-1)); row("diagonal(t, offset=1)",np.diagonal(T,offset=1)); row("diagonal(t, offset=-2)",np.diagonal(T,offset=-2)); row("diagonal(t, offset=1, axis1=1, axis2=0)",np.diagonal(T,1,1,0))
row("diag(b, k=-1)",np.diag(b,-1)); row("diag(b, k=2)",np.diag(b,2)); row("diag(t, k=-1)",np.diag(T,-1))
row("cho_solve(cholesky(s), b)",np.linalg.solve(S,b)); row("cho_solve(cholesky(s, lower=False), b, lower=False)",np.linalg.solve(S,b))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "linalg_values.h"), "w") as to:
    to.write("/* linalg_values.h: results of NumPy and SciPy; written by linalg.py.  Signs of vectors are turned to ours. */\n")
    for f, v in out:
        to.write('{ "%s", %d, { %s } },\n' % (f, len(v), ", ".join(repr(float(x)) for x in v)))
