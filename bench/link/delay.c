// SPDX-License-Identifier: Apache-2.0
/*
 * A long cable: joins two network namespaces by a device `far0` in each, and hands every packet over
 * a fixed time after it came. For kernels that cannot delay packets themselves.
 *
 *     delay NAMESPACE NAMESPACE MILLISECONDS
 *
 * It says `ready` on standard output when the devices are there, and ends when it is told to.
 */
#define _GNU_SOURCE /* setns */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PACKET_BYTES 1600u
#define PACKETS 32768u /* on the way in one direction; more are lost, as on a real line */

struct packet {
    int64_t due_ns;
    size_t bytes;
    uint8_t data[PACKET_BYTES];
};

/* One direction: a ring of packets in the order in which they came. */
struct lane {
    struct packet *ring;
    size_t first, count;
    int from, to;
};

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The device is made in the namespace, and stays there when we leave it. */
static int open_device(const char *namespace) {
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    char path[256];
    int space, device;

    snprintf(path, sizeof path, "/var/run/netns/%s", namespace);
    space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET))
        die(path);
    close(space);
    device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    memcpy(request.ifr_name, "far0", 5);
    if (device < 0 || ioctl(device, TUNSETIFF, &request))
        die("/dev/net/tun");
    return device;
}

static void take_in(struct lane *lane, int64_t delay_ns) {
    while (lane->count < PACKETS) {
        struct packet *packet = &lane->ring[(lane->first + lane->count) % PACKETS];
        ssize_t bytes = read(lane->from, packet->data, sizeof packet->data);

        if (bytes <= 0)
            return;
        packet->bytes = (size_t)bytes;
        packet->due_ns = now_ns() + delay_ns;
        lane->count++;
    }
}

static void hand_over(struct lane *lane) {
    while (lane->count && lane->ring[lane->first].due_ns <= now_ns()) {
        const struct packet *packet = &lane->ring[lane->first];

        if (write(lane->to, packet->data, packet->bytes) < 0) {
            /* a device that is down or full loses it */
        }
        lane->first = (lane->first + 1) % PACKETS;
        lane->count--;
    }
}

/* Until the next packet is due, or for a while. */
static struct timespec patience(const struct lane *lanes) {
    int64_t wait = 1000000000;

    for (int i = 0; i < 2; i++) {
        int64_t left = lanes[i].count ? lanes[i].ring[lanes[i].first].due_ns - now_ns() : wait;

        wait = left < wait ? left : wait;
    }
    wait = wait < 0 ? 0 : wait;
    return (struct timespec){wait / 1000000000, wait % 1000000000};
}

int main(int argc, char **argv) {
    struct lane lanes[2] = {{0}};
    struct pollfd files[2];
    int64_t delay_ns;

    if (argc != 4) {
        fprintf(stderr, "Usage: delay NAMESPACE NAMESPACE MILLISECONDS\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* whoever started it is gone: so are we */
    prctl(PR_SET_TIMERSLACK, 1);
    delay_ns = (int64_t)(atof(argv[3]) * 1e6);
    lanes[0].from = lanes[1].to = open_device(argv[1]);
    lanes[1].from = lanes[0].to = open_device(argv[2]);
    for (int i = 0; i < 2; i++) {
        lanes[i].ring = malloc(PACKETS * sizeof *lanes[i].ring);
        if (!lanes[i].ring)
            die("memory");
        files[i] = (struct pollfd){lanes[i].from, POLLIN, 0};
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct timespec wait = patience(lanes);

        ppoll(files, 2, &wait, NULL);
        for (int i = 0; i < 2; i++) {
            take_in(&lanes[i], delay_ns);
            hand_over(&lanes[i]);
        }
    }
}
