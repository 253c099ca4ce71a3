"""Computes in inner(), which outer() calls, for ever."""


def inner():
    return sum(i * i for i in range(3000))


def outer():
    print("ready", flush=True)
    while True:
        inner()


outer()
