// What runs in the pods of the tests: `lab SHARE MEMORY FILE` uses SHARE percent of a processor, and MEMORY bytes of
// memory, and writes FILE bytes into /written; all are 0 where they are left out. It ends at SIGTERM.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void end(int signal) {
	(void)signal;
	_exit(0);
}

static long long nanoseconds(clockid_t clock) {
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **arguments) {
	signal(SIGTERM, end);
	signal(SIGINT, end);
	long long share = count > 1 ? atoll(arguments[1]) : 0;
	long long memory = count > 2 ? atoll(arguments[2]) : 0;
	long long file = count > 3 ? atoll(arguments[3]) : 0;
	if (memory > 0) {
		char *area = malloc(memory);
		if (!area) return 1;
		memset(area, 1, memory);
	}
	if (file > 0) {
		char block[4096];
		memset(block, 1, sizeof block);
		FILE *written = fopen("/written", "w");
		if (!written) return 1;
		for (long long done = 0; done < file; done += sizeof block) fwrite(block, 1, sizeof block, written);
		fclose(written);
	}
	if (share <= 0)
		for (;;) pause();
	long long begin = nanoseconds(CLOCK_MONOTONIC), used = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	struct timespec rest = {0, 2000000};
	for (;;) {
		long long elapsed = nanoseconds(CLOCK_MONOTONIC) - begin;
		if ((nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - used) * 100 >= elapsed * share) nanosleep(&rest, 0);
	}
}
