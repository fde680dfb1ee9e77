"""The admins' and operators' pages about hardware tiers: what the tier doctor says, warm-up hours, and the rush planner.

It owns the fragment that follows the typing in a tier's form. Others may import `tier_records` and the warm-up part of the form; the
form itself is in `dashboard.administration`.
"""
