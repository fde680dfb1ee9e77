from dashboard.palette import views as palette
from dashboard.shell.routes import path

urlpatterns = [path("palette/", palette.palette, name="palette")]
