from dashboard.administration.urls import catalogue
from dashboard.logs.views import knowledge, verbose_logs
from dashboard.shell.routes import path

urlpatterns = [
    path("verbose-logs/", verbose_logs.verbose_logs, name="verbose-logs"),
    *catalogue(knowledge.KNOWLEDGE, knowledge.knowledge_base, knowledge.knowledge_entry, knowledge.knowledge_archive),
    path("knowledge/<name:id>/found/", knowledge.knowledge_found, name="knowledge-found"),
]
