"""Every rule on a single notebook: a function that returns what is wrong with it.

`RULES` are of what a notebook does, `TEXT_RULES` of how it is written.
"""

import agreement
import hygiene

RULES = [
    hygiene.tag_faults,
    hygiene.output_faults,
    hygiene.count_faults,
    hygiene.checked_faults,
    hygiene.section_faults,
    hygiene.solution_faults,
    hygiene.markup_faults,
    hygiene.framework_faults,
    agreement.save_faults,
]
TEXT_RULES = [hygiene.width_faults, hygiene.text_faults]
