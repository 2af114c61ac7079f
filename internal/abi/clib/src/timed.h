// Events, host functions and writes of words that take place KVG_DELAY_US after
// they were put into a stream, on a thread of the system's: the device for
// measuring how long a wake-up takes. All streams have the same delay, so what
// is to come is a queue.
#include <pthread.h>
#include <time.h>

static int64_t timed_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct {
	int64_t at;
	CUhostFn fn;
	void *arg;
	uint32_t *word;
	uint32_t value;
} timed_action;

enum { TIMED_ACTIONS = 4096, TIMED_SPIN_NS = 150 * 1000 };

static timed_action timed_queue[TIMED_ACTIONS];
static uint32_t timed_head, timed_len;
static pthread_mutex_t timed_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t timed_more = PTHREAD_COND_INITIALIZER;
static int64_t timed_last; // when the last action was carried out

static void timed_until(int64_t at, int64_t spin) {
	int64_t sleep = at - spin;
	if (sleep > timed_now()) {
		struct timespec t = {.tv_sec = sleep / 1000000000, .tv_nsec = sleep % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
	while (timed_now() < at) {}
}

static void *timed_run(void *unused) {
	for (;;) {
		pthread_mutex_lock(&timed_lock);
		while (!timed_len) pthread_cond_wait(&timed_more, &timed_lock);
		timed_action a = timed_queue[timed_head++ % TIMED_ACTIONS];
		timed_len--;
		pthread_mutex_unlock(&timed_lock);
		timed_until(a.at, TIMED_SPIN_NS);
		__atomic_store_n(&timed_last, timed_now(), __ATOMIC_RELEASE);
		if (a.fn) a.fn(a.arg);
		else __atomic_store_n(a.word, a.value, __ATOMIC_RELEASE);
	}
	return NULL;
}

static CUresult timed_add(timed_action a) {
	static int running;
	pthread_mutex_lock(&timed_lock);
	if (!running) {
		pthread_t t;
		running = !pthread_create(&t, NULL, timed_run, NULL);
		if (running) pthread_detach(t);
	}
	int ok = running && timed_len < TIMED_ACTIONS;
	if (ok) timed_queue[(timed_head + timed_len++) % TIMED_ACTIONS] = a;
	pthread_cond_signal(&timed_more);
	pthread_mutex_unlock(&timed_lock);
	return ok ? 0 : 2;
}

static int64_t timed_at(void) { return timed_now() + (int64_t)KVG_DELAY_US * 1000; }

// When the last record fires or has fired, and when the last host function or
// write was carried out, on CLOCK_MONOTONIC.
static int64_t timed_record;
CUresult kvgTimedRecord(uint64_t *ns) { *ns = __atomic_load_n(&timed_record, __ATOMIC_ACQUIRE); return 0; }
CUresult kvgTimedLast(uint64_t *ns) { *ns = __atomic_load_n(&timed_last, __ATOMIC_ACQUIRE); return 0; }

// An event is the time when it fires.
static CUresult noop_cuEventCreate(CUevent *event, unsigned int flags) {
	int64_t *e = calloc(1, sizeof *e);
	*event = (CUevent)e;
	return e ? 0 : 2;
}
static CUresult noop_cuEventDestroy_v2(CUevent event) { free((void *)event); return 0; }
static CUresult noop_cuEventRecord(CUevent event, CUstream stream) {
	int64_t at = timed_at();
	__atomic_store_n((int64_t *)event, at, __ATOMIC_RELEASE);
	__atomic_store_n(&timed_record, at, __ATOMIC_RELEASE);
	return 0;
}
static CUresult noop_cuEventQuery(CUevent event) {
	return timed_now() >= __atomic_load_n((int64_t *)event, __ATOMIC_ACQUIRE) ? 0 : 600;
}
static CUresult noop_cuEventSynchronize(CUevent event) {
	timed_until(__atomic_load_n((int64_t *)event, __ATOMIC_ACQUIRE), 0);
	return 0;
}
static CUresult noop_cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg) {
	return timed_add((timed_action){.at = timed_at(), .fn = fn, .arg = arg});
}
static CUresult noop_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags) {
	return timed_add((timed_action){.at = timed_at(), .word = (uint32_t *)addr, .value = value});
}
static CUresult noop_cuStreamSynchronize(CUstream stream) {
	timed_until(__atomic_load_n(&timed_record, __ATOMIC_ACQUIRE), 0);
	for (;;) {
		pthread_mutex_lock(&timed_lock);
		uint32_t n = timed_len;
		pthread_mutex_unlock(&timed_lock);
		if (!n) return 0;
		timed_until(timed_now() + 10000, 0);
	}
}
