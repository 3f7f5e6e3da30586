// See fiber.h. Compiled without the thread sanitizer and without control-flow protection: the switch returns on another stack.
#include "fiber.h"

#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
#ifdef HC_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef HC_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

static const size_t STACK = 256 << 10, GUARD = 4096;

// The scheduler's side of a switch; one grid runs at a time, so there is one.
static void *scheduler_pointer;
#ifdef HC_ASAN
static void *scheduler_fake;
static const void *scheduler_stack;
static size_t scheduler_size;
#endif
#ifdef HC_TSAN
static void *scheduler_tsan;
#endif

#if defined(__x86_64__)
// Saves what the ABI keeps across calls on the own stack, leaves its address in *from, and goes on where `to` was left.
extern "C" void hc_switch(void **from, void *to);
__asm__(".text\n"
        ".globl hc_switch\n"
        ".hidden hc_switch\n"
        ".type hc_switch,@function\n"
        "hc_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp,(%rdi)\n"
        "    movq %rsi,%rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size hc_switch,.-hc_switch\n");

static void *prepare(char *stack, void (*body)(void))
{
    void **top = reinterpret_cast<void **>(stack + STACK - 16);
    *--top = nullptr; // where body would return to
    *--top = reinterpret_cast<void *>(body);
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    return top;
}
#else
static void hc_switch(void **from, void *to)
{
    ucontext_t here;
    *from = &here;
    swapcontext(&here, static_cast<ucontext_t *>(to));
}

static void *prepare(char *stack, void (*body)(void))
{
    ucontext_t *context = reinterpret_cast<ucontext_t *>(stack); // read once, before the stack has grown down to it
    if (getcontext(context) != 0)
        std::abort();
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK;
    makecontext(context, body, 0);
    return context;
}
#endif

hc_fiber *hc_fiber_new(void (*body)(void))
{
    hc_fiber *f = new hc_fiber{};
    void *memory = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD, PROT_NONE) != 0) {
        std::fprintf(stderr, "hostcuda: no memory for the stack of a thread\n");
        std::abort();
    }
    f->stack = static_cast<char *>(memory) + GUARD;
#ifdef VALGRIND_STACK_REGISTER
    (void)VALGRIND_STACK_REGISTER(f->stack, f->stack + STACK);
#endif
#ifdef HC_TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
    f->stack_pointer = prepare(f->stack, body);
    return f;
}

void hc_fiber_free(hc_fiber *f)
{
    if (!f)
        return;
#ifdef HC_TSAN
    __tsan_destroy_fiber(f->tsan);
#endif
#ifdef HC_ASAN
    ASAN_UNPOISON_MEMORY_REGION(f->stack, STACK); // others will be given this memory
#endif
    munmap(f->stack - GUARD, STACK + GUARD);
    delete f;
}

void hc_fiber_begin(void)
{
#ifdef HC_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_size);
#endif
}

void hc_fiber_enter(hc_fiber *f)
{
#ifdef HC_ASAN
    __sanitizer_start_switch_fiber(&scheduler_fake, f->stack, STACK);
#endif
#ifdef HC_TSAN
    scheduler_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->tsan, __tsan_switch_to_fiber_no_sync);
#endif
    hc_switch(&scheduler_pointer, f->stack_pointer);
#ifdef HC_ASAN
    __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
}

void hc_fiber_leave(hc_fiber *self)
{
#ifdef HC_ASAN
    __sanitizer_start_switch_fiber(&self->fake_stack, scheduler_stack, scheduler_size);
#endif
#ifdef HC_TSAN
    __tsan_switch_to_fiber(scheduler_tsan, __tsan_switch_to_fiber_no_sync);
#endif
    hc_switch(&self->stack_pointer, scheduler_pointer);
#ifdef HC_ASAN
    __sanitizer_finish_switch_fiber(self->fake_stack, &scheduler_stack, &scheduler_size);
#endif
    (void)self;
}

#ifdef HC_TSAN
// The runtime's interface for managed heaps is the one that can declare memory to be new. It is set up once in a process, however many
// objects this file is linked into.
extern "C" void __tsan_java_init(uintptr_t begin, uintptr_t size);
extern "C" void __tsan_java_alloc(uintptr_t at, uintptr_t size);
extern "C" void __tsan_java_free(uintptr_t at, uintptr_t size);

void hc_forget(void *memory, size_t bytes)
{
    static const char mark[] = "HC_TSAN_READY";
    if (bytes == 0)
        return;
    uintptr_t begin = reinterpret_cast<uintptr_t>(memory) / 8 * 8, end = (reinterpret_cast<uintptr_t>(memory) + bytes + 7) / 8 * 8;
    if (!std::getenv(mark)) {
        setenv(mark, "1", 1);
        __tsan_java_init(8, UINTPTR_MAX / 16 * 8);
    } else {
        __tsan_java_free(begin, end - begin);
    }
    __tsan_java_alloc(begin, end - begin);
}
#else
void hc_forget(void *, size_t)
{
}
#endif
