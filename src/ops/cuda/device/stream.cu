#include "ops/cuda/device/stream_state.h"
#include "ops/stream.h"
#include "tensor/cuda/status.h"

namespace shoal::ops {

using shoal::cuda::check;

std::unique_ptr<Stream> Stream::create(Device device, StreamPriority priority, DevicePart part) {
  if (device.kind == DeviceKind::cpu) return nullptr;
  return std::make_unique<cuda::StreamState>(device.index, priority, part);
}

std::unique_ptr<Stream> Stream::planning(Device device) {
  if (device.kind == DeviceKind::cpu) return nullptr;
  return std::make_unique<cuda::StreamState>(cuda::StreamState::Planning{}, device.index);
}

namespace cuda {
namespace {

constexpr int64_t kStageAlignment = 64;

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, device), "device attribute");
  return value;
}

// As the driver counts: lower numbers go first.
int number_of(StreamPriority priority) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
  if (priority == StreamPriority::high) return greatest;
  return priority == StreamPriority::normal && least - greatest >= 2 ? least - 1 : least;
}

StreamHandle make_stream(int priority) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "stream");
  return StreamHandle(stream);
}

EventHandle make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  return EventHandle(event);
}

}  // namespace

DeviceFacts DeviceFacts::of(int device) {
  return {.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, device),
          .architecture = 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
                          attribute(cudaDevAttrComputeCapabilityMinor, device),
          .most_shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device)};
}

StreamState::StreamState(Planning, int device) : device_(device) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) cudaGetLastError();
  if (device < devices) facts_ = DeviceFacts::of(device);
}

StreamState::StreamState(int device, StreamPriority priority, DevicePart part)
    : device_(device), facts_(DeviceFacts::of(device)) {
  shoal::cuda::make_current(device);
  for (Half& half : halves_) {
    half.memory = Buffer::page_locked(kStageBytes, {DeviceKind::cuda, device});
    half.copied = make_event();
  }
  counters_ = Tensor::zeros(DType::i32, {kCounters}, {DeviceKind::cuda, device});
  stream_ = make_stream(number_of(priority));
  part_ = part_of_device(device, part, number_of(priority));
}

StreamState::~StreamState() {
  if (!stream_) return;
  // Ignored: the caller that waited for a spoilt result has seen the error. The other share has nothing left.
  if (cudaStreamSynchronize(stream()) != cudaSuccess) cudaGetLastError();
}

void StreamState::use(Share share) {
  if (!part_ || share == share_) return;
  synchronize();
  share_ = share;
}

void StreamState::prepare(const void* kernel) {
  if (!prepared_.insert(kernel).second) return;
  cudaFuncAttributes found{};
  check(cudaFuncGetAttributes(&found, kernel), "attributes of a kernel");
  const int most = facts_.most_shared_bytes - static_cast<int>(found.sharedSizeBytes);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
        "shared memory of a kernel");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared),
        "shared memory of a kernel");
}

void* StreamState::stage(int64_t bytes) {
  CHECK(!in_step_, "an upload or download inside of run_step");
  CHECK(0 <= bytes && bytes <= kStageBytes, "bytes ", bytes);
  if (used_ + bytes > kStageBytes) enter_next_half();
  char* const memory = static_cast<char*>(halves_[half_].memory.data()) + used_;
  used_ += (bytes + kStageAlignment - 1) / kStageAlignment * kStageAlignment;
  return memory;
}

void StreamState::enter_next_half() {
  check(cudaEventRecord(halves_[half_].copied.get(), stream()), "upload");
  half_ = (half_ + 1) % kHalves;
  check(cudaEventSynchronize(halves_[half_].copied.get()), "upload");
  used_ = 0;
}

void StreamState::synchronize() {
  CHECK(!in_step_, "waiting inside of run_step");
  check(cudaStreamSynchronize(stream()), "waiting for the device");
}

std::shared_ptr<std::remove_pointer_t<cudaEvent_t>> StreamState::mark() {
  CHECK(!in_step_, "a mark inside of run_step");
  EventHandle event = make_event();
  check(cudaEventRecord(event.get(), stream()), "mark");
  return event;
}

cudaStream_t StreamState::copies_after(cudaEvent_t event) {
  CHECK(!in_step_, "a download inside of run_step");
  if (!copies_) copies_ = make_stream(number_of(StreamPriority::normal));
  check(cudaStreamWaitEvent(copies_.get(), event), "waiting for earlier work");
  return copies_.get();
}

StreamState::Step::Step(StreamState& stream) : stream_(stream) {
  CHECK(!stream.in_step_, "run_step inside of run_step");
  stream.in_step_ = true;
}

StreamState& state_of(const Context& ctx) {
  CHECK(ctx.stream, "a context of a GPU without a stream");
  auto& stream = static_cast<StreamState&>(*ctx.stream);
  if (!is_planning(ctx)) shoal::cuda::make_current(stream.device());
  return stream;
}

}  // namespace cuda
}  // namespace shoal::ops
