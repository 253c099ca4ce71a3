"""Computes in inner(), which outer() calls, until it is killed."""


def inner():
    return sum(i * i for i in range(3000))


def outer():
    print("ready", flush=True)
    while True:
        inner()


outer()
