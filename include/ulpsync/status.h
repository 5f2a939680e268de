// SPDX-License-Identifier: Apache-2.0
/*
 * Status codes: what every fallible function of ulpsync returns.
 *
 * The numbers are pinned: they never change meaning and are never reused. They are also the exit
 * codes of the `ulpsync` command, so a script can tell a damaged file from a full disk.
 *
 * A function that fails has no other effect: its outputs are untouched and nothing is left behind.
 * It leaves a sentence for people in ulp_last_error(): what is wrong, where, and what to do.
 */
#ifndef ULPSYNC_STATUS_H
#define ULPSYNC_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ULP_API __attribute__((visibility("default")))
#else
#define ULP_API
#endif

enum ulp_status {
    ULP_OK = 0,
    ULP_E_INTERNAL = 1, /* a bug in ulpsync */
    ULP_E_USAGE = 2,    /* an argument or option makes no sense */

    /* resources and limits */
    ULP_E_NOMEM = 10,
    ULP_E_LIMIT = 11,       /* a named limit was exceeded; see docs/limits.md */
    ULP_E_CANCELLED = 12,   /* a progress callback asked to stop */
    ULP_E_UNSUPPORTED = 13, /* this build or machine cannot do it */

    /* the file system */
    ULP_E_NOT_FOUND = 20,
    ULP_E_EXISTS = 21,
    ULP_E_PERMISSION = 22,
    ULP_E_NO_SPACE = 23,
    ULP_E_IO = 24,
    ULP_E_FILE_KIND = 25,    /* a directory, FIFO, device or symlink where a plain file must be */
    ULP_E_FILE_CHANGED = 26, /* a file shrank or vanished while it was in use */

    /* model files (safetensors) */
    ULP_E_TRUNCATED = 30, /* the file ends before what it announces */
    ULP_E_TRAILING = 31,  /* bytes behind the end of what the file announces */
    ULP_E_HEADER = 32,    /* the header's length or first byte is impossible */
    ULP_E_JSON = 33,      /* not well-formed JSON */
    ULP_E_UTF8 = 34,      /* text that is not valid UTF-8, or holds a NUL */
    ULP_E_SCHEMA = 35,    /* well-formed JSON that does not say what it must */
    ULP_E_DUPLICATE = 36, /* one name twice */
    ULP_E_OVERLAP = 37,   /* two tensors share bytes */
    ULP_E_HOLE = 38,      /* bytes that belong to no tensor */
    ULP_E_SIZE = 39,      /* dtype and shape do not give the number of bytes stored */
    ULP_E_NAME = 40,      /* a tensor, dtype or file name that is not allowed */
    ULP_E_SHARDS = 41,    /* an index and its shards disagree */
    ULP_E_NO_MODEL = 42,  /* a directory that holds no model */

    /* patches */
    ULP_E_CODE = 50,          /* coded changes are damaged, or do not fit the weights */
    ULP_E_NOT_A_PATCH = 51,   /* the file does not begin like a patch */
    ULP_E_VERSION = 52,       /* a format version that this library does not read */
    ULP_E_CHECKSUM = 53,      /* bytes are not those that were written */
    ULP_E_TABLE = 54,         /* a table of contents that contradicts itself or is not canonical */
    ULP_E_LAYOUT = 55,        /* tensors with other names, dtypes or shapes */
    ULP_E_WRONG_BASE = 56,    /* the weights are not those that the patch starts from */
    ULP_E_WRONG_RESULT = 57,  /* a patch does not lead to the state that it names */
    ULP_E_NEEDS_HISTORY = 58, /* the patch is coded against moves that the receiver does not know */
    ULP_E_REGIONS = 59, /* regions that overlap, leave gaps, or whole patches where parts must be */
    ULP_E_INTERRUPTED = 60, /* files stand between two states; finish with `ulpsync recover` */
    ULP_E_BUSY = 61,        /* another process is changing these files */
    ULP_E_JOURNAL = 62,     /* the journal of an interrupted apply is damaged or does not fit */

    /* runs */
    ULP_E_NO_RUN = 70,       /* the store holds no run of that name */
    ULP_E_RECORD = 71,       /* a record of the log is malformed */
    ULP_E_CHAIN = 72,        /* records that do not follow each other: a forged log */
    ULP_E_FENCED = 73,       /* somebody else published in between; this publisher must stop */
    ULP_E_ROLLBACK = 74,     /* the log is shorter than it was seen to be */
    ULP_E_UNREACHABLE = 75,  /* no way leads from a state that can be had to the one wanted */
    ULP_E_PART = 76,         /* a part has another length or hash than the log says */
    ULP_E_FORK = 77,         /* two different records at one place of the log: equivocation */
    ULP_E_OTHER_RUN = 78,    /* a record or directory of another run */
    ULP_E_JUMP = 79,         /* a record that leaves out versions or sequences: fast-forward */
    ULP_E_FROZEN = 80,       /* the newest record is older than the maximum age asked for */
    ULP_E_UNSIGNED = 81,     /* a signature is required and the record has none */
    ULP_E_SIGNATURE = 82,    /* a signature is wrong, or by a key that is not trusted */
    ULP_E_PART_MISSING = 83, /* a part is not in the store */
    ULP_E_KEY = 84,          /* a key file that is none */

    /* GPUs */
    ULP_E_DEVICE = 90,  /* there is no GPU that can be used, or it failed */
    ULP_E_POISONED = 91 /* an apply to device memory was cut off: neither old nor new */
};

/* "ULP_E_TRUNCATED"; never NULL. */
ULP_API const char *ulp_status_name(enum ulp_status status);

/* One sentence: what the code means and what to do about it; never NULL. */
ULP_API const char *ulp_status_advice(enum ulp_status status);

/*
 * The message of the last failure on the calling thread; "" when there was none. It stays valid
 * until the next ulpsync call on the same thread. Text from files is quoted and cut to length.
 */
ULP_API const char *ulp_last_error(void);

/* Sets that message and returns `status`; for callbacks that run inside ulpsync. */
ULP_API enum ulp_status ulp_fail(enum ulp_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#ifdef __cplusplus
}
#endif

#endif
