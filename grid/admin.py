"""Django's own admin, for what the dashboard does not edit: accounts, and groups (registered by Django itself)."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from grid.models import User

admin.site.site_header = "Compute Grid accounts"
admin.site.site_title = "Compute Grid"
admin.site.register(User, UserAdmin)
# Each account is deleted on its own page. Django's list would end in an error for a choice that is no number.
admin.site.disable_action("delete_selected")
