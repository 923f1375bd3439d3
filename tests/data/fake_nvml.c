/* A small libnvidia-ml.so.1 for tests: GPU 0 works, GPU 1 has MIG, GPU 2 is lost. FAKE_NVML=hang|refuse changes nvmlInit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, LOST = 15 };
typedef struct { int number; int mig; } Device;
static Device devices[] = {{0, 0}, {1, 0}, {2, 0}, {3, 1}};

static int init(void) {
    const char *how = getenv("FAKE_NVML");
    if (how && !strcmp(how, "refuse")) return DRIVER_NOT_LOADED;
    if (how && !strcmp(how, "crash")) abort();
    if (how && !strcmp(how, "hang")) for (;;) pause();
    return OK;
}
int nvmlInitWithFlags(unsigned flags) { (void)flags; return init(); }
int nvmlInit_v2(void) { return init(); }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "error"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    if (index == 2) return LOST;
    *device = &devices[index];
    return OK;
}
int nvmlDeviceGetUUID(Device *d, char *text, unsigned size) { snprintf(text, size, d->mig ? "MIG-%d" : "GPU-%d", d->number); return OK; }
int nvmlDeviceGetName(Device *d, char *text, unsigned size) { (void)d; snprintf(text, size, "Fake H200"); return OK; }
int nvmlDeviceGetUtilizationRates(Device *d, unsigned *rates) {
    if (d->number != 0) return NOT_SUPPORTED;
    rates[0] = 100; rates[1] = 7;
    return OK;
}
int nvmlDeviceGetMemoryInfo(Device *d, unsigned long long *m) { m[0] = 1000 + d->number; m[1] = 400; m[2] = 600; return OK; }
int nvmlDeviceGetPowerUsage(Device *d, unsigned *milliwatts) { if (d->number) return NOT_SUPPORTED; *milliwatts = 123456; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(Device *d, unsigned *milliwatts) { (void)d; *milliwatts = 700000; return OK; }
int nvmlDeviceGetClockInfo(Device *d, int type, unsigned *mhz) { (void)d; *mhz = type == 1 ? 1980 : 1; return OK; }
int nvmlDeviceGetTemperature(Device *d, int sensor, unsigned *celsius) { (void)d; (void)sensor; *celsius = 64; return OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, unsigned long long *bits) { *bits = d->number ? 0x1 : 0x4 | 0x40; return OK; }
int nvmlDeviceGetTotalEccErrors(Device *d, int kind, int counter, unsigned long long *count) {
    if (d->number) return NOT_SUPPORTED;
    *count = kind == 1 && counter == 0 ? 2 : 99;
    return OK;
}
typedef struct { unsigned pid; unsigned long long memory; unsigned instance, compute; } Process;
int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, unsigned *count, Process *processes) {
    unsigned needed = d->number == 0 ? 2 : 0;
    if (needed > *count) { *count = needed; return INSUFFICIENT_SIZE; }
    *count = needed;
    for (unsigned i = 0; i < needed; i++) { memset(&processes[i], 0, sizeof(Process)); processes[i].pid = 4711 - i; }
    return OK;
}
int nvmlDeviceGetMigMode(Device *d, unsigned *now, unsigned *pending) {
    if (d->number != 1) return NOT_SUPPORTED;
    *now = *pending = 1;
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(Device *d, unsigned *count) { (void)d; *count = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, unsigned slot, Device **instance) {
    (void)d;
    if (slot != 1) return NOT_FOUND;
    *instance = &devices[3];
    return OK;
}
