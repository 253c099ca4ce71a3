# cython: language_level=3
def from_python(call):
    while True:
        through_def(call)


def through_def(call):
    return both_ways(call, 200000)


cpdef double both_ways(call, int turns):
    call()
    return of_c_only(turns)


cdef double of_c_only(int turns):
    cdef double total = 1
    cdef int i
    for i in range(turns):
        total = total * 1.0000001 + i
    return total
