"""The admins' and operators' pages about hardware tiers: the form, what the tier doctor says, warm-up hours, and the rush planner."""

PUBLIC = ("edited", "tier_records", "urls")
