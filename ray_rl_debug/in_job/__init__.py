"""Optional help from inside a job. Standard library only: it runs in the job's own processes."""
