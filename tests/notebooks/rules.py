"""Every rule on a single notebook: a function that returns what is wrong with it."""

import agreement
import hygiene

RULES = [
    hygiene.tag_faults,
    hygiene.output_faults,
    hygiene.count_faults,
    hygiene.width_faults,
    hygiene.checked_faults,
    hygiene.section_faults,
    hygiene.solution_faults,
    hygiene.text_faults,
    hygiene.markup_faults,
    hygiene.framework_faults,
    agreement.save_faults,
]
