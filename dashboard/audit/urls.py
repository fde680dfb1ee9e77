from dashboard.audit import views as audit_log
from dashboard.shell.routes import path

urlpatterns = [
    path("audit-log/", audit_log.audit_log, name="audit-log"),
    path("audit-log/export/", audit_log.audit_export, name="audit-export"),
]
