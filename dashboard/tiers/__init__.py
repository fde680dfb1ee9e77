"""The admins' and operators' pages about hardware tiers: the form, what the tier doctor says, warm-up hours, and the rush planner.

It owns the fragment that follows the typing in a tier's form, and `edited`, which is what admins edit of a tier. Others may import
`tier_records`.
"""

PUBLIC = ("edited", "tier_records", "urls")
