"""Can backpropagation on my region graph be computed from events alone, without looking at inputs?"""

import torch

from obverse.ladder import RegionGraph, compare, enumerate_teacher, random_student

# Five inputs, 0 or 1; two regions that overlap look at three each; the top looks at both.
INPUTS = {name: (position,) for position, name in enumerate("abcde")}
ABOVE = {"left": ("a", "b", "c"), "right": ("c", "d", "e"), "top": ("left", "right")}
GRAPH = RegionGraph.of(dict.fromkeys(INPUTS, ()) | ABOVE, INPUTS)
SUMMARIES = {"full": "all that it sees", "majority": "the majority of what it sees"}


def main() -> None:
    for summary, meaning in SUMMARIES.items():
        teacher = enumerate_teacher(GRAPH, summary)
        student = random_student(teacher.model, nodes=3, generator=torch.Generator().manual_seed(0))
        found = compare(teacher, student)
        print(f"Each region tells {meaning}; all {len(teacher.p)} inputs were tried:")
        for child in ("left", "right"):
            gap = found.edges["top", child].recursive.gap.relative
            print(
                f"  the gradient of the weights {child} → top, from events, is off by {gap:.1g} of its size"
            )
        print(f"  over all edges by at most {found.worst_recursive:.1g}")
    print("Exact (to rounding) only where no condition of the theory is broken; the gap says by how much.")


if __name__ == "__main__":
    main()
