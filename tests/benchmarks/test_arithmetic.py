import platform

import pytest

from tests.benchmarks.arithmetic import Arithmetic, arithmetic, count
from tests.benchmarks.timing import Skipped

PHILOX = """
.LBB0_1:
	vpmuludq	%ymm1, %ymm2, %ymm2
	vpsrlq	$32, %ymm2, %ymm3
	vpxor	32(%rsp), %ymm3, %ymm3
	vmovdqu	%ymm2, (%rax,%rcx,4)
	vmovdqu	%ymm3, 32(%rax,%rcx,4)
	addq	$16, %rcx
	jne	.LBB0_1
	vpxor	%ymm9, %ymm9, %ymm9
"""
FIRST_HALF = """
.LBB0_{}:
	vmovups	(%rax,%rcx,4), %ymm0
	vmulps	%ymm0, %ymm0, %ymm1
	vdivps	%ymm0, %ymm1, %ymm1
	vmovups	%ymm1, (%rdx,%rcx,4)
	jne	.LBB0_2
"""
SECOND_HALF = """
.LBB0_{}:
	vbroadcastss	(%rax), %ymm3
	vaddps	(%rdx,%rcx,4), %ymm3, %ymm1
	vdivps	%ymm0, %ymm1, %ymm1
	vsubps	%ymm0, %ymm1, %ymm1
	vmovups	%ymm1, (%rdx,%rcx,4)
	jne	.LBB0_3
"""
SCALAR = """
.LBB0_9:
	vdivss	%xmm0, %xmm1, %xmm1
	jne	.LBB0_9
"""


@pytest.mark.parametrize("copies", [1, 4])
def test_instructions_are_counted_by_coordinate_however_often_a_loop_is_copied(copies):
    halves = "".join(half.format(2 * k) for k in range(copies) for half in (FIRST_HALF, SECOND_HALF))
    # 3 for 16 words, and 2 and 3 for 8 coordinates each.
    assert count(PHILOX + halves + SCALAR) == Arithmetic(3 / 16 + 5 / 8, 8)


def test_code_without_vectors_is_not_counted():
    assert isinstance(count(SCALAR), Skipped)


@pytest.mark.deep
@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="counts code of x86")
def test_a_coordinate_takes_no_fewer_instructions_than_its_operations():
    found = arithmetic()
    if isinstance(found, Skipped):
        pytest.skip(found.skipped)
    # No two of the 24 operations that follow w make one instruction: nothing is fused.
    assert found.instructions * found.lanes > 24
