/* Which rows a query reads; used by attention.metal and attention_grad.metal. */
/* Query t of head h of batch b, which reads key head g. */
struct attention_row {
    uint b, h, g, t;
};

inline attention_row row_of(constant mica_attention_params &p, uint number)
{
    const uint h = number / p.times % p.heads;
    return attention_row{number / p.times / p.heads, h, h / (p.heads / p.groups), number % p.times};
}

inline long head_at(constant mica_head_view &v, uint b, uint h, uint i)
{
    return v.start + b * v.stride[0] + h * v.stride[1] + i * v.stride[2];
}
