trap 'say "the time limit is near"' USR1
