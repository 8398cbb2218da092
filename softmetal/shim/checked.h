/* The way to the runtime. */
const sm_runtime *sm_rt;
