"""One capture, whatever way its facts come: a whole cluster, this machine alone, the facts of the doctor."""
