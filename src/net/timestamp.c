// SPDX-License-Identifier: Apache-2.0
#include "net/timestamp.h"

#include <stdio.h>
#include <string.h>

#define DAY_SECONDS 86400u

/* The last moment of the year 9999. */
#define LAST_SECOND UINT64_C(253402300799)

struct moment {
    unsigned year, month, day, hour, minute, second;
};

static bool is_leap(unsigned year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned month_days(unsigned year, unsigned month) {
    static const unsigned days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from 1970 to the beginning of a year. */
static uint64_t days_before(unsigned year) {
    const uint64_t past = year - 1;

    return past * 365 + past / 4 - past / 100 + past / 400 - 719162;
}

static bool to_seconds(const struct moment *m, uint64_t *ret_seconds) {
    uint64_t days;

    if (m->year < 1970 || m->year > 9999 || m->month < 1 || m->month > 12 || m->day < 1 ||
        m->day > month_days(m->year, m->month) || m->hour > 23 || m->minute > 59 || m->second > 60)
        return false;
    days = days_before(m->year) + m->day - 1;
    for (unsigned month = 1; month < m->month; month++)
        days += month_days(m->year, month);
    *ret_seconds = days * DAY_SECONDS + m->hour * 3600u + m->minute * 60u + m->second;
    return true;
}

void timestamp_write(uint64_t seconds, char ret_text[TIMESTAMP_BYTES]) {
    const uint64_t within = seconds <= LAST_SECOND ? seconds : LAST_SECOND;
    const unsigned clock = (unsigned)(within % DAY_SECONDS);
    uint64_t days = within / DAY_SECONDS;
    unsigned year = (unsigned)(1970 + days / 366), month = 1;

    while (year < 9999 && days_before(year + 1) <= days)
        year++;
    days -= days_before(year);
    while (days >= month_days(year, month))
        days -= month_days(year, month++);
    snprintf(ret_text, TIMESTAMP_BYTES, "%04u%02u%02uT%02u%02u%02uZ", year % 10000u, month % 100u,
             (unsigned)(days + 1) % 100u, clock / 3600 % 100u, clock / 60 % 60, clock % 60);
}

bool timestamp_read_http(const char *text, uint64_t *ret_seconds) {
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct moment m;
    char month[4], zone[4];
    const char *found;
    int used = 0;

    if (sscanf(text, "%*3[A-Za-z], %2u %3[A-Za-z] %4u %2u:%2u:%2u %3[A-Z]%n", &m.day, month,
               &m.year, &m.hour, &m.minute, &m.second, zone, &used) != 7 ||
        text[used] || strcmp(zone, "GMT") != 0 || strlen(month) != 3)
        return false;
    found = strstr(names, month);
    if (!found || (found - names) % 3)
        return false;
    m.month = (unsigned)(found - names) / 3 + 1;
    return to_seconds(&m, ret_seconds);
}

bool timestamp_read_iso(const char *text, uint64_t *ret_seconds) {
    struct moment m;
    int used = 0;

    if (sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u%n", &m.year, &m.month, &m.day, &m.hour, &m.minute,
               &m.second, &used) != 6)
        return false;
    text += used;
    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    return (!strcmp(text, "Z") || !strcmp(text, "+00:00")) && to_seconds(&m, ret_seconds);
}
