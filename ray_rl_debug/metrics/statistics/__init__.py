"""Tests of trend and change for short, noisy, autocorrelated series; numpy and scipy are loaded when they are needed."""
