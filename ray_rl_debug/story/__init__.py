"""From the facts of many logs to one story: the first failure, its consequences, and how far each process came. Pure."""
