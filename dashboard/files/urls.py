from dashboard.files.views import changing_files, files, remotes
from dashboard.shell.routes import path

urlpatterns = [
    path("projects/<name:id>/files/", files.project_files, name="project-files"),
    path("projects/<name:id>/files/history/", files.project_history, name="project-history"),
    path("projects/<name:id>/files/download/", files.project_file, name="project-file"),
    path("projects/<name:id>/files/upload/", changing_files.project_upload, name="project-upload"),
    path("projects/<name:id>/files/delete/", changing_files.project_file_delete, name="project-file-delete"),
    path("projects/<name:id>/files/move/", changing_files.project_file_move, name="project-file-move"),
    path("projects/<name:id>/files/push-again/", files.project_push_again, name="project-push-again"),
    path("projects/<name:id>/remote/", remotes.project_remote, name="project-remote"),
    path("projects/<name:id>/remote/test/", remotes.project_remote_test, name="project-remote-test"),
    path("projects/<name:id>/remote/confirm/", remotes.project_remote_confirm, name="project-remote-confirm"),
    path("projects/<name:id>/remote/remove/", remotes.project_remote_remove, name="project-remote-remove"),
]
