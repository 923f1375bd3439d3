"""On the import path of a whole cluster: no process may look into another one, as in a container without SYS_PTRACE and another user's programs.

A process that is not dumpable refuses everything but its public /proc files to all who lack CAP_SYS_PTRACE (prctl(2), ptrace(2)).
"""

import ctypes

PR_SET_DUMPABLE = 4
ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
