#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

void upload(Context&, const void*, TensorView) { unavailable("upload"); }
void download(Context&, TensorView, void*) { unavailable("download"); }
Mark mark(Context&) { unavailable("mark"); }
void download(Context&, const Mark&, TensorView, void*) { unavailable("download"); }
void copy_in_order(Context&, TensorView, TensorView) { unavailable("step block"); }
void fill_zero(Context&, TensorView) { unavailable("fill_zero"); }
void synchronize(Context&) { unavailable("synchronize"); }

}  // namespace shoal::ops::cuda
