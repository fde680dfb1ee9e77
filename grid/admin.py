"""Django's own admin, kept for what the dashboard does not edit: accounts and groups (registered by Django itself)."""

from django.contrib import admin

admin.site.site_header = "Compute Grid accounts"
admin.site.site_title = "Compute Grid"
