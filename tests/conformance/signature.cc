// The list of ops, as section 3 of suites/FORMAT.md gives it, and its reader.
#include "tests/conformance/signature.h"

#include <map>
#include <sstream>

namespace retrograd::conformance {
namespace {

constexpr std::string_view kOps = R"(
abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh (input:T)
sigmoid erf erfc erfinv lgamma digamma relu silu mish softsign hardswish hardsigmoid logsigmoid relu6 selu (input:T)
sign floor ceil trunc frac isnan isinf isfinite logical_not clone detach contiguous zeros_like ones_like (input:T)
round (input:T, decimals=0)
leaky_relu (input:T, negative_slope=0.01)
elu celu (input:T, alpha=1.0)
gelu (input:T, approximate="none")
softplus (input:T, beta=1.0, threshold=20.0)
hardtanh (input:T, min_val=-1.0, max_val=1.0)
threshold (input:T, threshold, value)
clamp (input:T, min:N=null, max:N=null)
nan_to_num (input:T, nan=0.0, posinf=null, neginf=null)
to (input:T, dtype)
add sub (input:N, other:N, alpha=1)
mul atan2 maximum minimum fmod remainder hypot logaddexp eq ne lt le gt ge logical_and logical_or logical_xor (input:N, other:N)
div (input:N, other:N, rounding_mode=null)
pow (input:N, exponent:N)
where (condition:T, input:N, other:N)
lerp (input:T, end:T, weight:N)
addcmul addcdiv (input:T, tensor1:T, tensor2:T, value=1)
sum mean (input:T, dim=null, keepdim=false, dtype=null)
prod (input:T, dim=null, keepdim=false, dtype=null)
amax amin (input:T, dim=[], keepdim=false)
max min (input:T, dim=null, keepdim=false) -> values, indices
argmax argmin (input:T, dim=null, keepdim=false)
var std (input:T, dim=null, correction=1, keepdim=false)
logsumexp (input:T, dim, keepdim=false)
norm (input:T, p="fro", dim=null, keepdim=false)
vector_norm (x:T, ord=2, dim=null, keepdim=false)
all any (input:T, dim=null, keepdim=false)
cumsum cumprod (input:T, dim, dtype=null)
count_nonzero (input:T, dim=null)
reshape (input:T, shape)
view (input:T, size)
flatten (input:T, start_dim=0, end_dim=-1)
transpose (input:T, dim0, dim1)
permute (input:T, dims)
t (input:T)
expand broadcast_to (input:T, size)
squeeze (input:T, dim=null)
unsqueeze (input:T, dim)
narrow (input:T, dim, start, length)
select (input:T, dim, index)
slice (input:T, dim, start=null, end=null, step=1)
split (input:T, split_size_or_sections, dim=0) -> *
chunk (input:T, chunks, dim=0) -> *
unbind (input:T, dim=0) -> *
cat stack (tensors:T*, dim=0)
flip (input:T, dims)
roll (input:T, shifts, dims=null)
repeat (input:T, repeats)
tile (input:T, dims)
repeat_interleave (input:T, repeats:N, dim=null)
unfold (input:T, dimension, size, step)
diagonal (input:T, offset=0, dim1=0, dim2=1)
diag tril triu (input:T, diagonal=0)
movedim (input:T, source, destination)
as_strided (input:T, size, stride, storage_offset=null)
pad (input:T, pad, mode="constant", value=null)
gather (input:T, dim, index:T)
scatter (input:T, dim, index:T, src:T?, value=null)
scatter_add (input:T, dim, index:T, src:T)
index_select (input:T, dim, index:T)
index_add (input:T, dim, index:T, source:T, alpha=1)
index_copy (input:T, dim, index:T, source:T)
index_put (input:T, values:T, indices:T*, accumulate=false)
getitem (input:T, tensors:T*, index)
setitem_ (input:T, value:N, tensors:T*, index)
masked_fill (input:T, mask:T, value:N)
masked_select (input:T, mask:T)
masked_scatter (input:T, mask:T, source:T)
take (input:T, index:T)
take_along_dim (input:T, indices:T, dim=null)
topk (input:T, k, dim=-1, largest=true, sorted=true) -> values, indices
sort (input:T, dim=-1, descending=false, stable=false) -> values, indices
argsort (input:T, dim=-1, descending=false, stable=false)
embedding (input:T, weight:T, padding_idx=null, scale_grad_by_freq=false)
one_hot (tensor:T, num_classes=-1)
nonzero (input:T)
mm bmm (input:T, mat2:T)
matmul (input:T, other:T)
addmm (input:T, mat1:T, mat2:T, beta=1, alpha=1)
baddbmm (input:T, batch1:T, batch2:T, beta=1, alpha=1)
linear (input:T, weight:T, bias:T?)
dot (input:T, tensor:T)
mv (input:T, vec:T)
outer (input:T, vec2:T)
einsum (operands:T*, equation)
tensordot (a:T, b:T, dims=2)
inverse det (input:T)
slogdet (input:T) -> sign, logabsdet
cholesky (input:T, upper=false)
solve (A:T, B:T, left=true)
softmax log_softmax (input:T, dim, dtype=null)
cross_entropy (input:T, target:T, weight:T?, ignore_index=-100, reduction="mean", label_smoothing=0.0)
nll_loss (input:T, target:T, weight:T?, ignore_index=-100, reduction="mean")
mse_loss l1_loss (input:T, target:T, reduction="mean")
smooth_l1_loss (input:T, target:T, reduction="mean", beta=1.0)
huber_loss (input:T, target:T, reduction="mean", delta=1.0)
binary_cross_entropy (input:T, target:T, weight:T?, reduction="mean")
binary_cross_entropy_with_logits (input:T, target:T, weight:T?, pos_weight:T?, reduction="mean")
kl_div (input:T, target:T, reduction="mean", log_target=false)
layer_norm (input:T, normalized_shape, weight:T?, bias:T?, eps=1e-05)
rms_norm (input:T, normalized_shape, weight:T?, eps=null)
group_norm (input:T, num_groups, weight:T?, bias:T?, eps=1e-05)
batch_norm (input:T, running_mean:T?, running_var:T?, weight:T?, bias:T?, training=false, momentum=0.1, eps=1e-05)
instance_norm (input:T, running_mean:T?, running_var:T?, weight:T?, bias:T?, use_input_stats=true, momentum=0.1, eps=1e-05)
conv1d conv2d (input:T, weight:T, bias:T?, stride=1, padding=0, dilation=1, groups=1)
conv_transpose2d (input:T, weight:T, bias:T?, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
max_pool2d (input:T, kernel_size, stride=null, padding=0, dilation=1, ceil_mode=false, return_indices=false) -> values, indices
avg_pool2d (input:T, kernel_size, stride=null, padding=0, ceil_mode=false, count_include_pad=true, divisor_override=null)
adaptive_avg_pool2d (input:T, output_size)
interpolate (input:T, size=null, scale_factor=null, mode="nearest", align_corners=null)
scaled_dot_product_attention (query:T, key:T, value:T, attn_mask:T?, is_causal=false, scale=null)
cosine_similarity (x1:T, x2:T, dim=1, eps=1e-08)
fill (input:T, value:N)
copy (input:T, src:T)
zero (input:T)
)";

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos
             ? ""
             : std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// "other:N", "keepdim=false", "max:N=null".
Parameter parse_parameter(std::string text) {
  Parameter parameter;
  if (const size_t equals = text.find('='); equals != std::string::npos) {
    parameter.has_default = true;
    parameter.default_value = Json::parse(text.substr(equals + 1));
    text.resize(equals);
  }
  const size_t colon = text.find(':');
  parameter.name = text.substr(0, colon);
  if (colon == std::string::npos) return parameter;
  const std::string mark = text.substr(colon + 1);
  parameter.mark = mark == "T"    ? Parameter::Mark::tensor
                   : mark == "T?" ? Parameter::Mark::optional_tensor
                   : mark == "N"  ? Parameter::Mark::tensor_or_number
                                  : Parameter::Mark::tensors;
  return parameter;
}

using SignatureMap = std::map<std::string, Signature, std::less<>>;

// Lines are "name name ... (parameter, ...) -> results".
SignatureMap parse_ops(std::string_view text) {
  SignatureMap map;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t open = line.find('('), close = line.find(')');
    if (open == std::string::npos) continue;
    Signature signature;
    std::istringstream parameters(line.substr(open + 1, close - open - 1));
    for (std::string one; std::getline(parameters, one, ',');)
      signature.parameters.push_back(parse_parameter(trimmed(one)));
    std::istringstream names(line.substr(0, open));
    for (std::string name; names >> name;) map.emplace(name, signature);
  }
  return map;
}

// The ops that exist only as in-place forms, which the list gives without the underscore.
bool only_in_place(std::string_view base) { return base == "fill" || base == "copy" || base == "zero"; }

const SignatureMap& signatures() {
  static const SignatureMap map = parse_ops(kOps);
  return map;
}

}  // namespace

const Parameter* Signature::find(std::string_view name) const {
  for (const Parameter& parameter : parameters)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

std::string_view in_place_base(std::string_view op) {
  if (op.empty() || op.back() != '_' || signatures().contains(op)) return {};
  return op.substr(0, op.size() - 1);
}

const Signature* find_signature(std::string_view op) {
  const std::string_view base = in_place_base(op);
  if (base.empty() && only_in_place(op)) return nullptr;
  const auto it = signatures().find(base.empty() ? op : base);
  return it == signatures().end() ? nullptr : &it->second;
}

}  // namespace retrograd::conformance
