/* ThreadSafeArena::thread_cache_ of protobuf, whose place is computed and never looked at (no_arenas.cc). It is a byte and not
 * the 64 that the type has: of memory for the variables of threads a process keeps little for libraries that are loaded later. */
__thread char thread_cache __asm__("_ZN6google8protobuf8internal15ThreadSafeArena13thread_cache_E");
