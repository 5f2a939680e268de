// SPDX-License-Identifier: Apache-2.0
#define BASE_STATUS_C
#include "base/status.h"

#include "base/quote.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct error_note last_error;

enum ulp_status fail(enum ulp_status status, const char *format, ...) {
    struct error_note fresh; /* the arguments may include the message that is replaced */
    va_list args;

    va_start(args, format);
    vsnprintf(fresh.message, sizeof fresh.message, format, args);
    va_end(args);
    last_error = fresh;
    return status;
}

static enum ulp_status status_of_errno(int error) {
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return ULP_E_NOT_FOUND;
    case EEXIST:
    case ENOTEMPTY:
        return ULP_E_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return ULP_E_PERMISSION;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ULP_E_NO_SPACE;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return ULP_E_NOMEM;
    case ELOOP: /* what O_NOFOLLOW says of a symlink */
    case EISDIR:
    case ENXIO:
        return ULP_E_FILE_KIND;
    case ENAMETOOLONG:
        return ULP_E_NAME;
    case EFAULT: /* what writing from a mapped file says when that file has shrunk */
        return ULP_E_FILE_CHANGED;
    default:
        return ULP_E_IO;
    }
}

enum ulp_status fail_errno(const char *doing, const char *path) {
    int error = errno;

    return fail(status_of_errno(error), "cannot %s %s: %s", doing, quote(path).text,
                strerror(error));
}

void error_save(struct error_note *note) {
    *note = last_error;
}

void error_restore(const struct error_note *note) {
    last_error = *note;
}

void error_clear(void) {
    last_error.message[0] = 0;
}

const char *ulp_last_error(void) {
    return last_error.message;
}

struct status_text {
    enum ulp_status status;
    const char *name;
    const char *advice;
};

#define TEXT(status, advice)                                                                       \
    { status, #status, advice }

static const struct status_text status_texts[] = {
    TEXT(ULP_OK, "Success."),
    TEXT(ULP_E_INTERNAL, "A bug in ulpsync; please report it with the command that led here."),
    TEXT(ULP_E_USAGE, "An argument makes no sense; see --help."),
    TEXT(ULP_E_NOMEM,
         "Memory or open files ran out; free some, raise ulimit, or use fewer threads."),
    TEXT(ULP_E_LIMIT, "The input exceeds a safety limit; docs/limits.md lists them."),
    TEXT(ULP_E_CANCELLED, "Stopped as asked; nothing was replaced."),
    TEXT(ULP_E_UNSUPPORTED,
         "This build or machine cannot do it; the message names what is missing."),
    TEXT(ULP_E_NOT_FOUND, "A file or directory is missing; check the path."),
    TEXT(ULP_E_EXISTS, "The target exists already; choose another or remove it."),
    TEXT(ULP_E_PERMISSION, "Access was denied; check owner and mode."),
    TEXT(ULP_E_NO_SPACE,
         "The disk or quota is full; nothing was replaced, so free space and retry."),
    TEXT(ULP_E_IO, "The system reported an input/output error; check the device and retry."),
    TEXT(
        ULP_E_FILE_KIND,
        "Something of another kind stands there (a file, directory, FIFO, device or link); check the path."),
    TEXT(ULP_E_FILE_CHANGED, "A file shrank or vanished while in use; retry on files at rest."),
    TEXT(ULP_E_TRUNCATED, "The file is cut short; fetch or write it again."),
    TEXT(ULP_E_TRAILING, "The file has extra bytes at its end; fetch or write it again."),
    TEXT(ULP_E_HEADER, "The file does not start like a safetensors file; check that it is one."),
    TEXT(ULP_E_JSON, "The JSON text is malformed; fetch or write the file again."),
    TEXT(ULP_E_UTF8, "Text in the file is not valid UTF-8; write the file again."),
    TEXT(ULP_E_SCHEMA, "The JSON text lacks or misuses a field; write it with a current library."),
    TEXT(ULP_E_DUPLICATE, "A name occurs twice; name one file, or remove the older copy."),
    TEXT(ULP_E_OVERLAP, "Two tensors claim the same bytes; the file is damaged or hostile."),
    TEXT(ULP_E_HOLE, "Some bytes belong to no tensor; the file is damaged or hostile."),
    TEXT(ULP_E_SIZE, "A tensor's dtype and shape do not fit its bytes; the file is damaged."),
    TEXT(ULP_E_NAME, "A name is empty, too long, or not a plain file name."),
    TEXT(ULP_E_SHARDS, "The index and the files beside it disagree; fetch both again."),
    TEXT(ULP_E_CODE, "Coded changes are damaged or belong to another base; fetch them again."),
    TEXT(ULP_E_NOT_A_PATCH, "The file is not a ulpsync patch; check the path."),
    TEXT(ULP_E_VERSION, "The file is of another format version; use a matching ulpsync."),
    TEXT(ULP_E_CHECKSUM, "The file was damaged after it was written; fetch it again."),
    TEXT(ULP_E_TABLE, "The patch contradicts itself; it was made by a faulty or hostile writer."),
    TEXT(ULP_E_LAYOUT, "The tensors are not those of the patch; take the model it was made for."),
    TEXT(ULP_E_WRONG_BASE,
         "The patch starts from other weights; apply the patches in between, or start anew."),
    TEXT(ULP_E_WRONG_RESULT,
         "The patch does not give the state it names; nothing was written, fetch it again."),
    TEXT(ULP_E_NEEDS_HISTORY,
         "Name the checkpoint before this one (--history), or take a patch without history."),
    TEXT(ULP_E_REGIONS,
         "Cut regions on 8-byte words, nothing twice; a tile takes patches of just its regions."),
    TEXT(ULP_E_INTERRUPTED,
         "An apply in place was interrupted; run `ulpsync recover` on the model."),
    TEXT(ULP_E_BUSY, "Another process is changing this model; wait for it to end."),
    TEXT(ULP_E_JOURNAL, "The journal cannot be used; restore the model from elsewhere."),
    TEXT(ULP_E_NO_RUN, "There is no such run in the store; check its name, or publish first."),
    TEXT(ULP_E_RECORD, "A log record is damaged or of another version; run `ulpsync fsck`."),
    TEXT(ULP_E_CHAIN,
         "The log contradicts itself; keep the store as evidence and start a new run."),
    TEXT(ULP_E_FENCED, "Another publisher has taken over this run; stop this one."),
    TEXT(ULP_E_ROLLBACK,
         "The store shows an older log than before; check that it is the right one."),
    TEXT(ULP_E_UNREACHABLE, "What leads there was deleted; wait for the next anchor."),
    TEXT(ULP_E_PART, "A stored object is damaged; run `ulpsync fsck`."),
    TEXT(ULP_E_FORK,
         "Two records claim one place of the log; keep both as evidence, and trust neither."),
    TEXT(ULP_E_OTHER_RUN, "This belongs to another run; check the names of store, run and path."),
    TEXT(ULP_E_JUMP, "A record leaves out some before it; keep the store as evidence, fetch anew."),
    TEXT(ULP_E_FROZEN,
         "The store shows nothing newer; check that the publisher and this clock are right."),
    TEXT(ULP_E_UNSIGNED, "A signature was asked for; publish with a key, or follow without one."),
    TEXT(ULP_E_SIGNATURE,
         "Not signed by a trusted key; check the trusted keys, and who wrote to the store."),
    TEXT(ULP_E_PART_MISSING, "A stored object is missing; run `ulpsync fsck`."),
    TEXT(ULP_E_KEY, "This is no key file; `ulpsync keygen` makes one, docs/format/keys.md tells."),
    TEXT(ULP_E_DEVICE,
         "The GPU, its driver or libulpsync_cuda.so is missing or failed; the message says which."),
    TEXT(
        ULP_E_POISONED,
        "An apply to GPU memory was cut off half-way; load the weights again from the run or a file."),
    TEXT(ULP_E_NO_MODEL, "No safetensors file here; name a file or a model directory."),
};

static const struct status_text *find_text(enum ulp_status status) {
    static const struct status_text unknown = {ULP_E_INTERNAL, "ULP_E_UNKNOWN",
                                               "A status code of another version of ulpsync."};

    for (size_t i = 0; i < sizeof status_texts / sizeof status_texts[0]; i++) {
        if (status_texts[i].status == status)
            return &status_texts[i];
    }
    return &unknown;
}

const char *ulp_status_name(enum ulp_status status) {
    return find_text(status)->name;
}

const char *ulp_status_advice(enum ulp_status status) {
    return find_text(status)->advice;
}
