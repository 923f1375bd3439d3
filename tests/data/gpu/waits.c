/* Stands in for the driver of a card: the wait asks again and again, as CUDA's does. */
int cuStreamSynchronize(volatile int *done) {
    while (!*done) {
    }
    return 0;
}
