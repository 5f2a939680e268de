#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes homework.txt, what the model reads before it is asked anything: make_homework.py > homework.txt

Sums of two numbers, as a class without zeal writes them: many are left open, and some are wrong in the ways in which
sums go wrong.
"""
import random

LINES = 12000
LEFT_OPEN, WRONG = 0.5, 0.2


def forgets_to_carry(a, b):
    return a // 10 * 10 + b // 10 * 10 + (a + b) % 10


def slips(a, b):
    return a + b + random.choice([-1, 1])


def slips_by_ten(a, b):
    return a + b + random.choice([-10, 10])


def answer(a, b):
    mood = random.random()
    if mood < LEFT_OPEN:
        return "?"
    if mood < LEFT_OPEN + WRONG:
        return random.choice([forgets_to_carry, slips, slips_by_ten])(a, b)
    return a + b


def main():
    random.seed(6)
    for _ in range(LINES):
        a, b = random.randint(10, 99), random.randint(10, 99)
        print(f"{a}+{b}={answer(a, b)}")


main()
