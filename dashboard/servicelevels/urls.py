from dashboard.servicelevels import views as service_levels
from dashboard.shell.routes import path

urlpatterns = [path("service-levels/", service_levels.service_levels, name="service-levels")]
