// What ThreadSanitizer is told in every executable; TSAN_OPTIONS in the environment goes before it.
extern "C" const char* __tsan_default_options() {
  return "suppressions=" HOLDFAST_SANITIZERS_DIR "/tsan.supp:second_deadlock_stack=1:history_size=4";
}
