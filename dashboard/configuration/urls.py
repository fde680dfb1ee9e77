from dashboard.configuration import views as configuration
from dashboard.shell.routes import path

urlpatterns = [path("configuration/", configuration.configuration, name="configuration")]
