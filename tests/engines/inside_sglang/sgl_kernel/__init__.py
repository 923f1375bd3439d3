"""Stands for SGLang's kernels, of which no build for CPUs is published: two modules import names from here that a CPU never calls."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise RuntimeError(f"sgl_kernel.{name} was called, but there is no kernel here")

    return missing
