// What AddressSanitizer, LeakSanitizer and UBSan are told in every executable; the environment goes before it.
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=1:strict_init_order=1"; }
extern "C" const char* __lsan_default_options() { return "suppressions=" HOLDFAST_SANITIZERS_DIR "/lsan.supp"; }
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }
