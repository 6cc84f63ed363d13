// Multiplies with OpenBLAS on request. A request is a line "m n k ta tb reps"; the answer is the seconds that reps
// products took, after one that was not counted.
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static float *fill(size_t n) {
	float *x = aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
	for (size_t i = 0; i < n; i++) x[i] = (float)(i % 17) / 16 - 0.5f;
	return x;
}

int main(void) {
	int m, n, k, ta, tb, reps;
	printf("%s %s\n", openblas_get_config(), openblas_get_corename());
	fflush(stdout);
	while (scanf("%d %d %d %d %d %d", &m, &n, &k, &ta, &tb, &reps) == 6) {
		float *a = fill((size_t)m * k), *b = fill((size_t)k * n), *c = fill((size_t)m * n);
		double start = 0;
		for (int i = -1; i < reps; i++) {
			if (i == 0) start = now();
			cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, 1, a,
				ta ? m : k, b, tb ? k : n, 0, c, n);
		}
		printf("%.9f %.6f\n", now() - start, c[(size_t)m * n / 2]);
		fflush(stdout);
		free(a), free(b), free(c);
	}
}
