((DOCTOR != 1)) || die 8 "not started: the doctor found trouble that would fail the job"
