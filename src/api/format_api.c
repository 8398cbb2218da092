/* Public functions of the table of block formats (quant.def). */
#include "quant/quant.h"

/* The formats that are not in the table: their scales are separate arrays. */
static const mica_format_info separate_scale_formats[] = {
    {.name = "HF_TERNARY",
     .about = "ternary, four rows per byte, one scale (Hugging Face)",
     .kind = MICA_FORMAT_APART,
     .bits_per_weight = 2,
     .block_elements = 1,
     .block_rows = 4,
     .block_bytes = 1,
     .scale_offset = -1,
     .code_bits = 2,
     .dtype = -1,
     .gguf_type = -1,
     .gguf_file_type = -1,
     .readable = true,
     .ternary = true,
     .one_scale = true},
    {.name = "AFFINE",
     .about = "2 to 8 bits, a scale and a bias for 32, 64 or 128 weights (MLX)",
     .kind = MICA_FORMAT_APART,
     .block_rows = 1,
     .scale_offset = -1,
     .dtype = -1,
     .gguf_type = -1,
     .gguf_file_type = -1,
     .readable = true},
};
enum { N_APART = sizeof separate_scale_formats / sizeof *separate_scale_formats };

static mica_format_info table_info(const mica__quant *q)
{
    const bool panel = q->rows > 1, plain = q->safetensors != NULL;
    return (mica_format_info){
        .name = q->name,
        .about = q->about,
        .kind = plain   ? MICA_FORMAT_PLAIN
                : panel ? MICA_FORMAT_PANELS
                        : MICA_FORMAT_BLOCKS,
        .bits_per_weight = 8.0 * q->bytes / (q->block * q->rows),
        .block_elements = q->block,
        .block_rows = q->rows,
        .block_bytes = q->bytes,
        .tail_bytes = (int64_t)q->tail,
        .scale_offset = q->scale[0],
        .code_bits = q->code_bits,
        .dtype = q->dtype,
        .gguf_type = q->gguf,
        .gguf_file_type = q->file_type,
        .safetensors = q->safetensors,
        .readable = q->unpack || panel,
        .packable = q->pack || panel,
        .output = q->output,
        .ternary = q->ternary,
        .one_scale = q->tail > 0,
        .fallback = q->fallback,
    };
}

size_t mica_format_count(void) { return MICA__QUANT_COUNT + N_APART; }

bool mica_format_at(size_t i, mica_format_info *info)
{
    if (i >= mica_format_count()) return false;
    if (!info) return true;
    const mica__quant *q = mica__quant_get((mica__quant_id)i);
    const mica_format_info full = q ? table_info(q) : separate_scale_formats[i - MICA__QUANT_COUNT];
    return mica_struct_write("mica_format_info", info, &full, sizeof full) == MICA_OK;
}

static bool same_name(const char *name, const char *given)
{
    for (; *name && *given; name++, given++)
        if (*name != (*given >= 'a' && *given <= 'z' ? *given - 'a' + 'A' : *given)) return false;
    return *name == *given;
}

bool mica_format_find(const char *name, mica_format_info *info)
{
    mica_format_info one = {.struct_size = sizeof one};
    for (size_t i = 0; name && mica_format_at(i, &one); i++)
        if (same_name(one.name, name)) return mica_format_at(i, info);
    return false;
}
