from dashboard.demonstration import views as demonstration
from dashboard.shell.routes import path

urlpatterns = [
    path("demonstration/", demonstration.demonstration, name="demonstration"),
    path("demonstration/size/", demonstration.demonstration_size, name="demonstration-size"),
    path("demonstration/failure/", demonstration.demonstration_failure, name="demonstration-failure"),
]
