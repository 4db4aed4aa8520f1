// NVIDIA's driver and compiler as far as `accel` calls them, without a GPU: as a shared library it stands in for both, so that all that is said to the driver is tested
// where there is none. Memory is the host's, a stream is a thread, and a kernel is what the headers make of it on the host. Copies are checked against what was
// allocated. From outside, by the environment:
//
// FAKE_GPUS how many there are; FAKE_VERSION the driver's; FAKE_MEMORY octets; FAKE_SHARED octets of a block's shared memory; FAKE_COMPILE=fails;
// FAKE_LAUNCHES after which the GPU is lost; FAKE_HANGS=1: no kernel ever ends; FAKE_WRONG=1: of all that is copied
// back the first octet is wrong.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ldpc_decode.cuh"
#include "ldpc_encode.cuh"
#include "ring.cuh"

enum { SUCCESS = 0, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

static long setting(const char *name, long otherwise)
{
	const char *text = getenv(name);
	return text != nullptr ? atol(text) : otherwise;
}

static std::mutex lock;
static std::map<u64, size_t> allocated;
static size_t used;
static std::atomic<int> lost{SUCCESS};
static std::atomic<long> launches{0};
// What is in streams, or runs.
static std::atomic<long> pending{0};

static bool is_inside(u64 address, size_t octets)
{
	std::lock_guard<std::mutex> guard(lock);
	auto next = allocated.upper_bound(address);
	if (next == allocated.begin())
		return false;
	auto found = std::prev(next);
	return address + octets <= found->first + found->second;
}

struct Stream {
	std::mutex lock;
	std::condition_variable work;
	std::deque<std::function<void()>> queue;
	bool stop = false;

	Stream()
	{
		std::thread([this] { serve(); }).detach();
	}
	void serve()
	{
		for (;;) {
			std::unique_lock<std::mutex> guard(lock);
			work.wait(guard, [this] { return stop || !queue.empty(); });
			if (queue.empty())
				return;
			auto next = queue.front();
			queue.pop_front();
			guard.unlock();
			// What a lost device had yet to do, it doesn't.
			if (lost == SUCCESS)
				next();
			pending--;
		}
	}
	void push(std::function<void()> what)
	{
		pending++;
		std::lock_guard<std::mutex> guard(lock);
		queue.push_back(std::move(what));
		work.notify_one();
	}
};

struct Event {
	std::atomic<u64> recorded{0}, passed{0};
	std::chrono::steady_clock::time_point when;
};

template <typename T> static T argument(void **arguments, int at)
{
	T value;
	memcpy(&value, arguments[at], sizeof(value));
	return value;
}

static const AesLookup<1> table = {AES_TABLE.words, 0};
typedef std::function<void()> Work;
typedef Work (*Prepare)(void **, u32 threads, size_t shared);

static Work hash(void **a, u32 threads, size_t)
{
	auto items = argument<u8 *>(a, 0);
	auto count = argument<u32>(a, 1), hashes = argument<u32>(a, 2);
	auto output = argument<u8 *>(a, 3);
	return [=] {
		for (u32 thread = 0; thread < threads; thread++)
			hash_items(items, count, hashes, output, thread, threads);
	};
}

static Work nea2(void **a, u32 threads, size_t)
{
	auto items = argument<u8 *>(a, 0), data = argument<u8 *>(a, 2);
	auto count = argument<u32>(a, 1), octets = argument<u32>(a, 3);
	auto output = argument<u8 *>(a, 4);
	auto lanes = argument<u32>(a, 5);
	return [=] {
		for (u32 thread = 0; thread < threads; thread++)
			nea2_packets(table, items, count, data, octets, output, thread, threads, lanes);
	};
}

template <u32 KIND> static Work look_up(void **a, u32 threads, size_t)
{
	auto header = argument<u32 *>(a, 0);
	auto items = argument<u8 *>(a, 1);
	auto count = argument<u32>(a, 2);
	auto output = argument<u8 *>(a, 3);
	return [=] {
		for (u32 thread = 0; thread < threads; thread++)
			table_look_up(header, KIND, items, count, output, thread, threads);
	};
}

template <bool ENCODE> static Work ldpc(void **a, u32 threads, size_t shared)
{
	auto plan = argument<u32 *>(a, 0);
	auto items = argument<u8 *>(a, 1), output = argument<u8 *>(a, 2);
	auto blocks = argument<u32>(a, 3);
	auto workspace = argument<u8 *>(a, 4);
	auto stride = argument<u64>(a, 5);
	return [=] {
		u32 z = plan[PLAN_Z], info = (plan[PLAN_INFO_BITS] + 7) / 8;
		u32 needed = ENCODE ? ldpc_encode_octets(plan) : ldpc_bits(plan) + plan[PLAN_EDGES] * z;
		if (needed > (workspace != nullptr ? stride : shared)) {
			lost = ILLEGAL_ADDRESS;
			return;
		}
		std::vector<u8> own(needed, 0x55);
		u8 *memory = workspace != nullptr ? workspace : own.data();
		for (u32 number = 0; number < blocks; number++) {
			auto each = [&](auto step) {
				for (u32 thread = 0; thread < threads; thread++)
					step(thread);
			};
			if (ENCODE) {
				const u8 *from = items + static_cast<size_t>(number) * info;
				u32 coded = (plan[PLAN_COLUMNS] * z - plan[PLAN_PUNCTURED] + 7) / 8;
				each([&](u32 thread) { ldpc_encode_unpack(plan, from, memory, thread, threads); });
				each([&](u32 thread) { ldpc_encode_core(plan, memory, thread, threads); });
				each([&](u32 thread) { ldpc_encode_rest_of_core(plan, memory, thread, threads); });
				each([&](u32 thread) { ldpc_encode_rows(plan, memory, thread, threads); });
				each([&](u32 thread) { ldpc_encode_pack(plan, memory, output + static_cast<size_t>(number) * coded, thread, threads); });
				continue;
			}
			i8 *bits = reinterpret_cast<i8 *>(memory);
			const i8 *received = reinterpret_cast<const i8 *>(items) + static_cast<size_t>(number) * plan[PLAN_RECEIVED];
			LdpcBlock block = {plan, received, bits, bits + ldpc_bits(plan)};
			auto holds = [&] {
				bool all = true;
				each([&](u32 thread) { all &= ldpc_holds(block, thread, threads); });
				return all;
			};
			each([&](u32 thread) { ldpc_load(block, thread, threads); });
			u32 iterations = 0;
			bool held = false;
			while (iterations < plan[PLAN_ITERATIONS] && !held) {
				for (u32 row = 0; row < plan[PLAN_ROWS]; row++)
					each([&](u32 thread) { ldpc_sweep(block, row, thread, threads); });
				iterations++;
				held = plan[PLAN_EARLY_STOP] && holds();
			}
			u8 *to = output + static_cast<size_t>(number) * (PLAN_VERDICT + info);
			ldpc_verdict(to, iterations, held || holds());
			each([&](u32 thread) { ldpc_pack(block, to + PLAN_VERDICT, thread, threads); });
		}
	};
}

static Work continuous(void **a, u32, size_t)
{
	auto ring = argument<u64 *>(a, 0);
	return [=] {
		std::vector<u64> last(ring[RING_SLOTS]);
		for (u64 at = 0; at < last.size(); at++)
			last[at] = load_acquire(ring_slot(ring, at).done + RING_SEQUENCE);
		while (load_acquire(ring + RING_COMMAND) != RING_LEAVE && lost == SUCCESS) {
			bool any = false;
			for (u64 at = 0; at < last.size(); at++) {
				RingSlot slot = ring_slot(ring, at);
				u64 sequence = load_acquire(slot.doorbell + RING_SEQUENCE), status = RING_DONE;
				if (sequence == last[at])
					continue;
				for (u32 thread = 0; thread < 256; thread++)
					status |= ring_work(table, slot, thread, 256);
				slot.done[RING_STATUS] = status;
				slot.done[RING_STARTED] = slot.done[RING_ENDED] = 0;
				store_release(slot.done + RING_SEQUENCE, sequence);
				last[at] = sequence;
				any = true;
			}
			if (!any)
				std::this_thread::sleep_for(std::chrono::microseconds(20));
		}
	};
}

struct Function {
	const char *name;
	Prepare prepare;
};

static Function functions[] = {
	{"hash", hash},
	{"nea2", nea2},
	{"look_up_flow4", look_up<TABLE_FLOW4>},
	{"look_up_flow6", look_up<TABLE_FLOW6>},
	{"look_up_link", look_up<TABLE_LINK>},
	{"look_up_lpm4", look_up<TABLE_LPM4>},
	{"look_up_lpm6", look_up<TABLE_LPM6>},
	{"look_up_memo", look_up<TABLE_MEMO>},
	{"ldpc_encode", ldpc<true>},
	{"ldpc_decode", ldpc<false>},
	{"continuous", continuous},
};

// To take memory or give it back waits for all that runs. What waits for a kernel that nobody ends would wait forever.
static void wait_for_all()
{
	for (long waits = 0; pending != 0 && !setting("FAKE_HANGS", 0); waits++) {
		if (waits > 300000) {
			fprintf(stderr, "memory is taken or given back while a kernel runs that does not end\n");
			abort();
		}
		std::this_thread::sleep_for(std::chrono::microseconds(100));
	}
}

static int allocate(void **to, size_t octets)
{
	wait_for_all();
	std::lock_guard<std::mutex> guard(lock);
	if (used + octets > static_cast<size_t>(setting("FAKE_MEMORY", 1L << 40)))
		return OUT_OF_MEMORY;
	*to = aligned_alloc(256, (octets + 255) / 256 * 256);
	if (*to == nullptr)
		return OUT_OF_MEMORY;
	memset(*to, 0xa5, octets);
	allocated[reinterpret_cast<u64>(*to)] = octets;
	used += octets;
	return lost;
}

static int release(void *what)
{
	wait_for_all();
	std::lock_guard<std::mutex> guard(lock);
	auto found = allocated.find(reinterpret_cast<u64>(what));
	if (found == allocated.end())
		return lost = ILLEGAL_ADDRESS;
	used -= found->second;
	allocated.erase(found);
	free(what);
	return lost;
}

static int copy(Stream *stream, u64 to, u64 from, size_t octets)
{
	if (!is_inside(to, octets) || !is_inside(from, octets))
		return lost = ILLEGAL_ADDRESS;
	stream->push([=] { memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), octets); });
	return lost;
}

extern "C" {
int cuDriverGetVersion(int *version) { *version = static_cast<int>(setting("FAKE_VERSION", 13000)); return SUCCESS; }
int cuInit(unsigned) { return setting("FAKE_GPUS", 1) == 0 ? NO_DEVICE : SUCCESS; }
int cuDeviceGetCount(int *count) { *count = static_cast<int>(setting("FAKE_GPUS", 1)); return SUCCESS; }
int cuDeviceGet(int *device, int number) { *device = number; return SUCCESS; }
int cuDeviceGetName(char *name, int room, int) { snprintf(name, static_cast<size_t>(room), "Fake"); return SUCCESS; }
int cuDeviceTotalMem_v2(size_t *octets, int) { *octets = 1ul << 34; return SUCCESS; }
int cuDeviceGetAttribute(int *value, int attribute, int)
{
	*value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 2 : attribute == 97 ? static_cast<int>(setting("FAKE_SHARED", 232448)) : -1;
	return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void **context, int) { *context = &lost; return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
int cuCtxSetCurrent(void *context) { return context == &lost ? SUCCESS : LAUNCH_FAILED; }
int cuMemAlloc_v2(void **to, size_t octets) { return allocate(to, octets); }
int cuMemFree_v2(void *what) { return release(what); }
int cuMemHostAlloc(void **to, size_t octets, unsigned flags) { return flags == 3 ? allocate(to, octets) : LAUNCH_FAILED; }
int cuMemFreeHost(void *what) { return release(what); }
int cuModuleLoadData(void **module, const void *image) { *module = functions; return memcmp(image, "fake", 4) == 0 ? lost.load() : NOT_FOUND; }
int cuModuleUnload(void *) { return SUCCESS; }
int cuModuleGetFunction(void **function, void *, const char *name)
{
	for (Function &known : functions)
		if (strcmp(known.name, name) == 0)
			return *function = &known, SUCCESS;
	return NOT_FOUND;
}
int cuFuncLoad(void *) { return SUCCESS; }
int cuFuncSetAttribute(void *, int attribute, int value) { return attribute == 8 && value == setting("FAKE_SHARED", 232448) ? SUCCESS : LAUNCH_FAILED; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int, size_t) { *blocks = 2; return SUCCESS; }
int cuStreamCreate(void **stream, unsigned flags) { *stream = new Stream; return flags == 1 ? lost.load() : LAUNCH_FAILED; }
int cuStreamDestroy_v2(void *stream)
{
	auto *ended = static_cast<Stream *>(stream);
	std::lock_guard<std::mutex> guard(ended->lock);
	ended->stop = true;
	ended->work.notify_one();
	return SUCCESS;
}
int cuEventCreate(void **event, unsigned) { *event = new Event; return lost; }
int cuEventDestroy_v2(void *) { return SUCCESS; }
int cuEventRecord(void *event, void *stream)
{
	auto *mark = static_cast<Event *>(event);
	u64 number = ++mark->recorded;
	static_cast<Stream *>(stream)->push([=] {
		mark->when = std::chrono::steady_clock::now();
		mark->passed = number;
	});
	return lost;
}
int cuEventQuery(void *event)
{
	auto *mark = static_cast<Event *>(event);
	return lost != SUCCESS ? lost.load() : mark->passed == mark->recorded ? SUCCESS : NOT_READY;
}
int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end)
{
	*milliseconds = std::chrono::duration<float, std::milli>(static_cast<Event *>(end)->when - static_cast<Event *>(start)->when).count();
	return SUCCESS;
}
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t octets, void *stream) { return copy(static_cast<Stream *>(stream), to, reinterpret_cast<u64>(from), octets); }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t octets, void *stream)
{
	int answer = copy(static_cast<Stream *>(stream), reinterpret_cast<u64>(to), from, octets);
	if (octets > 0 && setting("FAKE_WRONG", 0))
		static_cast<Stream *>(stream)->push([to] { *static_cast<u8 *>(to) ^= 1; });
	return answer;
}
int cuLaunchKernel(void *function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned shared, void *stream, void **arguments, void **)
{
	if (blocks == 0 || threads == 0 || threads > 1024 || shared > static_cast<unsigned>(setting("FAKE_SHARED", 232448)))
		return lost = LAUNCH_FAILED;
	if (++launches > setting("FAKE_LAUNCHES", 1L << 40))
		return lost = LAUNCH_FAILED;
	auto *known = static_cast<Function *>(function);
	bool is_ldpc = strncmp(known->name, "ldpc", 4) == 0;
	Work work = known->prepare(arguments, is_ldpc ? threads : blocks * threads, shared);
	if (setting("FAKE_HANGS", 0))
		work = [] { std::this_thread::sleep_for(std::chrono::hours(1)); };
	static_cast<Stream *>(stream)->push(work);
	return lost;
}
int cuGetErrorString(int error, const char **text) { *text = error == LAUNCH_FAILED ? "launch failed" : "an error"; return SUCCESS; }
int cuGetErrorName(int, const char **text) { *text = "ERROR"; return SUCCESS; }

int nvrtcVersion(int *major, int *minor) { *major = 13, *minor = 0; return SUCCESS; }
int nvrtcCreateProgram(void **program, const char *, const char *, int, const char *const *, const char *const *) { *program = functions; return SUCCESS; }
int nvrtcCompileProgram(void *, int, const char *const *) { return getenv("FAKE_COMPILE") != nullptr ? 6 : SUCCESS; }
int nvrtcGetProgramLogSize(void *, size_t *octets) { *octets = 17; return SUCCESS; }
int nvrtcGetProgramLog(void *, char *log) { memcpy(log, "nothing compiles", 17); return SUCCESS; }
int nvrtcGetCUBINSize(void *, size_t *octets) { *octets = 4; return SUCCESS; }
int nvrtcGetCUBIN(void *, char *cubin) { memcpy(cubin, "fake", 4); return SUCCESS; }
int nvrtcDestroyProgram(void **) { return SUCCESS; }
}
