"""OpenTelemetry of the companion: a trace per snapshot, gauges, verdicts as log records. Providers are our own, never the process's global ones."""
