"""Who gets which answer: every page, form and websocket by every role, and what the proxy lets through. `test_table` and `test_proxy`
ask each of them, and fail for an address or a method that has no row here.

Roles: nobody is logged in as `nobody`; `owner` has launched the executions named workspace and cluster in a project that `lead` owns,
`member` contributes to and `viewer` only looks at; `former` was a member too and has launched left-workspace and left-cluster;
`viewer` contributed once and has launched viewed-workspace and viewed-cluster; what is named notebook is a stopped workspace of the
same three people; app is the owner's, shared with viewer and, before he left, former; so is shared-port,
a port of workspace, and left-port is one of left-workspace, shared with viewer; training is a job of the owner's; owners-view and
owners-secret are his, too; a `stranger` has nothing to do with it;
`invited` has a link and no password yet; an `auditor` sees everything and does nothing. Answers: a status, `login` for a way to the login
page (by a redirect; of a websocket, a goodbye that says so), `open` or `refused` for a websocket, `in` for whatever Django's admin answers
to an admin. 422 and 400 refuse a form, not a person.

What begins with `proxy:` is asked of the proxy, on the origin of the execution or, without one, of all of them. There everybody but
nobody holds a secret, as if it were left over from a time when he might open it; the execution's program answers 200, and `auth` an
ingress that asks whether the request may go straight there.
"""

from dataclasses import dataclass

ROLES = ("nobody", "owner", "lead", "member", "viewer", "former", "stranger", "auditor", "operator", "admin")

PROXY = "proxy:"

TABLE = """
                                                 nobody   owner    lead     member   viewer   former   stranger auditor  operator admin
GET  login                                       200      302      302      302      302      302      302      302      302      302
POST login                                       200      302      302      302      302      302      302      302      302      302
POST logout                                      login    login    login    login    login    login    login    login    login    login
GET  notifications                               login    200      200      200      200      200      200      200      200      200
WS   notifications                               login    open     open     open     open     open     open     open     open     open
POST notifications-read                          login    302      302      302      302      302      302      302      302      302
POST notification-choices                        login    302      302      302      302      302      302      302      302      302
POST notification-test                           login    302      302      302      302      302      302      302      302      302
GET  webhook                                     login    200      200      200      200      200      200      200      200      200
POST webhook                                     login    422      422      422      422      422      422      422      422      422
POST webhook-remove                              login    302      302      302      302      302      302      302      302      302
POST table-view                                  login    302      302      302      302      302      302      302      302      302
POST first-steps-hide                            login    302      302      302      302      302      302      302      302      302
POST view-save                                   login    302      302      302      302      302      302      302      302      302
GET  view-open               owners-view         login    302      404      404      404      404      404      404      404      404
POST view-default            owners-view         login    302      404      404      404      404      404      404      404      404
POST view-delete             owners-view         login    302      404      404      404      404      404      404      404      404
GET  join                    no-such             410      410      410      410      410      410      410      410      410      410
POST join                    no-such             410      410      410      410      410      410      410      410      410      410
GET  join                    invited             302      302      302      302      302      302      302      302      302      302
POST join                    invited             302      302      302      302      302      302      302      302      302      302
POST theme                                       302      302      302      302      302      302      302      302      302      302
GET  favicon                                     302      302      302      302      302      302      302      302      302      302
GET  healthz                                     200      200      200      200      200      200      200      200      200      200
GET  readyz                                      200      200      200      200      200      200      200      200      200      200
GET  freshz                                      200      200      200      200      200      200      200      200      200      200

GET  home                                        login    200      200      200      200      200      200      200      200      200
WS   home                                        login    open     open     open     open     open     open     open     open     open
GET  palette                                     login    200      200      200      200      200      200      200      200      200
GET  help                                        login    200      200      200      200      200      200      200      200      200
GET  usage                                       login    200      200      200      200      200      200      200      200      200
GET  usage-of-everybody                          login    403      403      403      403      403      403      200      200      200
GET  person-usage            owner               login    200      403      403      403      403      403      200      200      200
GET  account                                     login    200      200      200      200      200      200      200      200      200
POST account                                     login    302      302      302      302      302      302      302      302      302
GET  password                                    login    200      200      200      200      200      200      200      200      200
POST password                                    login    200      200      200      200      200      200      200      200      200
POST session-end                                 login    302      302      302      302      302      302      302      302      302
POST sessions-end-others                         login    302      302      302      302      302      302      302      302      302

GET  launch                                      login    200      200      200      200      200      200      200      200      200
POST launch                                      login    302      302      302      422      422      422      422      422      422
POST launch-estimate                             login    200      200      200      200      200      200      200      200      200
POST launch-objects                              login    200      200      200      422      422      422      422      422      422
POST launch-check                                login    200      200      200      200      200      200      200      200      200
POST launch-choices                              login    200      200      200      200      200      200      200      200      200

GET  executions                                  login    200      200      200      200      200      200      200      200      200
WS   executions                                  login    open     open     open     open     open     open     open     open     open
GET  queue                                       login    200      200      200      200      200      200      200      200      200
WS   queue                                       login    open     open     open     open     open     open     open     open     open
GET  queue-order             workspace           login    403      403      403      403      404      404      403      200      200
POST queue-order             workspace           login    403      403      403      403      404      404      403      422      422
GET  queue-hold                                  login    403      403      403      403      403      403      403      200      200
POST queue-hold                                  login    403      403      403      403      403      403      403      302      302
GET  queue-release                               login    403      403      403      403      403      403      403      200      200
POST queue-release                               login    403      403      403      403      403      403      403      302      302
GET  queue-cancel                                login    200      200      200      200      200      200      200      200      200
POST queue-cancel                                login    302      302      302      302      302      302      302      302      302
GET  executions-stop                             login    200      200      200      200      200      200      200      200      200
POST executions-stop                             login    302      302      302      302      302      302      302      302      302
GET  executions-message                          login    403      403      403      403      403      403      403      200      200
POST executions-message                          login    403      403      403      403      403      403      403      200      200

GET  execution               workspace           login    200      200      200      200      404      404      200      200      200
WS   execution               workspace           login    open     open     open     open     refused  refused  open     open     open
GET  execution-log           workspace           login    200      200      200      200      404      404      200      200      200
GET  execution-lifecycle     workspace           login    200      200      200      200      404      404      200      200      200
GET  execution-metrics       workspace           login    200      200      200      200      404      404      200      200      200
GET  execution-results       workspace           login    404      404      404      404      404      404      404      404      404
GET  execution-record        workspace           login    404      404      404      404      404      404      404      404      404
GET  execution-stop          workspace           login    200      200      403      403      404      404      403      200      200
POST execution-stop          workspace           login    302      302      403      403      404      404      403      302      302
POST execution-keep          workspace           login    302      302      403      403      404      404      403      302      302
POST execution-open          workspace           login    302      403      403      403      403      403      403      403      403
GET  execution-opening       workspace           login    302      403      403      403      403      403      403      403      403
GET  pod                     workspace           login    200      200      200      200      403      403      200      200      200
GET  pod-log                 workspace           login    200      200      200      200      403      403      200      200      200
WS   pod                     workspace           login    open     open     open     open     refused  refused  open     open     open

GET  execution               cluster             login    200      200      200      200      404      404      200      200      200
WS   execution               cluster             login    open     open     open     open     refused  refused  open     open     open
GET  execution-log           cluster             login    200      200      200      200      404      404      200      200      200
GET  execution-stop          cluster             login    200      200      403      403      404      404      403      200      200
POST execution-stop          cluster             login    302      302      403      403      404      404      403      302      302
POST execution-open          cluster             login    302      302      302      403      403      403      403      403      403
GET  execution-opening       cluster             login    302      302      302      403      403      403      403      403      403
GET  execution-samples       cluster             login    200      200      200      200      404      404      200      200      200
GET  execution-resize        cluster             login    200      200      403      403      404      404      403      200      200
POST execution-resize        cluster             login    302      302      403      403      404      404      403      302      302
GET  execution-restart-head  cluster             login    200      200      403      403      404      404      403      200      200
POST execution-restart-head  cluster             login    302      302      403      403      404      404      403      302      302

GET  execution-share         app                 login    200      403      403      403      404      404      403      403      403
POST execution-share         app                 login    302      403      403      403      404      404      403      403      403
GET  execution-share         workspace           login    404      404      404      404      404      404      404      404      404
POST execution-open          app                 login    302      403      403      302      403      403      403      403      403
GET  execution-opening       app                 login    302      403      403      302      403      403      403      403      403
GET  execution               left-workspace      login    200      200      200      200      200      404      200      200      200
WS   execution               left-workspace      login    open     open     open     open     open     refused  open     open     open
GET  execution-log           left-workspace      login    200      200      200      200      403      404      200      200      200
GET  execution-lifecycle     left-workspace      login    200      200      200      200      200      404      200      200      200
GET  execution-metrics       left-workspace      login    200      200      200      200      403      404      200      200      200
GET  execution-results       left-workspace      login    404      404      404      404      404      404      404      404      404
GET  execution-record        left-workspace      login    404      404      404      404      403      404      404      404      404
GET  execution-stop          left-workspace      login    403      200      403      403      200      404      403      200      200
POST execution-stop          left-workspace      login    403      302      403      403      302      404      403      302      302
POST execution-keep          left-workspace      login    403      302      403      403      302      404      403      302      302
POST execution-open          left-workspace      login    403      403      403      403      403      403      403      403      403
GET  execution-opening       left-workspace      login    403      403      403      403      403      403      403      403      403
GET  pod                     left-workspace      login    200      200      200      200      403      403      200      200      200
GET  pod-log                 left-workspace      login    200      200      200      200      403      403      200      200      200
WS   pod                     left-workspace      login    open     open     open     open     refused  refused  open     open     open

GET  execution-samples       left-cluster        login    200      200      200      200      200      404      200      200      200
GET  execution-resize        left-cluster        login    403      200      403      403      403      404      403      200      200
POST execution-resize        left-cluster        login    403      302      403      403      403      404      403      302      302
GET  execution-restart-head  left-cluster        login    403      200      403      403      403      404      403      200      200
POST execution-restart-head  left-cluster        login    403      302      403      403      403      404      403      302      302
POST execution-stop          left-cluster        login    403      302      403      403      302      404      403      302      302
POST execution-open          left-cluster        login    302      302      302      403      403      403      403      403      403

GET  execution               viewed-workspace    login    200      200      200      200      404      404      200      200      200
WS   execution               viewed-workspace    login    open     open     open     open     refused  refused  open     open     open
GET  execution-lifecycle     viewed-workspace    login    200      200      200      200      404      404      200      200      200
WS   pod                     viewed-workspace    login    open     open     open     open     refused  refused  open     open     open
GET  execution-log           viewed-workspace    login    200      200      200      200      404      404      200      200      200
GET  execution-stop          viewed-workspace    login    403      200      403      200      404      404      403      200      200
POST execution-stop          viewed-workspace    login    403      302      403      302      404      404      403      302      302
POST execution-open          viewed-workspace    login    403      403      403      403      403      403      403      403      403
GET  execution-opening       viewed-workspace    login    403      403      403      403      403      403      403      403      403
GET  pod                     viewed-workspace    login    200      200      200      200      403      403      200      200      200
GET  pod-log                 viewed-workspace    login    200      200      200      200      403      403      200      200      200
GET  execution-samples       viewed-cluster      login    200      200      200      200      404      404      200      200      200
GET  execution-resize        viewed-cluster      login    403      200      403      403      404      404      403      200      200
POST execution-resize        viewed-cluster      login    403      302      403      403      404      404      403      302      302
GET  execution-restart-head  viewed-cluster      login    403      200      403      403      404      404      403      200      200
POST execution-restart-head  viewed-cluster      login    403      302      403      403      404      404      403      302      302
POST execution-stop          viewed-cluster      login    403      302      403      302      404      404      403      302      302
POST execution-open          viewed-cluster      login    302      302      302      403      403      403      403      403      403

GET  workspaces                                  login    200      200      200      200      200      200      200      200      200
GET  workspace               notebook            login    200      200      200      200      404      404      200      200      200
GET  workspace-resume        notebook            login    200      403      403      403      404      404      403      403      403
POST workspace-resume        notebook            login    302      403      403      403      404      404      403      403      403
GET  workspace-restart       notebook            login    200      403      403      403      404      404      403      403      403
POST workspace-restart       notebook            login    302      403      403      403      404      404      403      403      403
POST workspace-restart-cancel notebook           login    302      403      403      403      404      404      403      403      403
POST workspace-rename        notebook            login    302      403      403      403      404      404      403      403      403
GET  workspace-share         notebook            login    200      403      403      403      404      404      403      403      403
POST workspace-share         notebook            login    422      403      403      403      404      404      403      403      403
POST workspace-unshare       notebook            login    302      403      403      403      404      404      403      403      403
GET  workspace-delete        notebook            login    200      403      403      403      404      404      403      403      403
POST workspace-delete        notebook            login    302      403      403      403      404      404      403      403      403
GET  jobs                                        login    200      200      200      200      200      200      200      200      200
WS   jobs                                        login    open     open     open     open     open     open     open     open     open
GET  jobs-stop                                   login    200      200      200      200      200      200      200      200      200
POST jobs-stop                                   login    302      302      302      302      302      302      302      302      302
GET  job                     training            login    200      200      200      200      404      404      200      200      200
WS   job                     training            login    open     open     open     open     refused  refused  open     open     open
GET  job-compare             training            login    302      302      302      302      404      404      302      302      302
GET  job-metrics             training            login    200      200      200      200      404      404      200      200      200
GET  job-again               training            login    200      403      403      403      404      404      403      403      403
POST job-again               training            login    302      403      403      403      404      404      403      403      403
GET  job-run                 training            login    200      403      403      403      404      404      403      403      403
POST job-run                 training            login    422      403      403      403      404      404      403      403      403
GET  job-sweep               training            login    200      403      403      403      404      404      403      403      403
POST job-sweep               training            login    422      403      403      403      404      404      403      403      403
GET  job-edit                training            login    200      403      403      403      404      404      403      403      403
POST job-edit                training            login    422      403      403      403      404      404      403      403      403
GET  schedule-new            training            login    200      403      403      403      404      404      403      403      403
POST schedule-new            training            login    422      403      403      403      404      404      403      403      403
POST schedule-check          training            login    200      403      403      403      404      404      403      403      403
GET  schedule-edit           training            login    200      403      403      403      404      404      403      403      403
POST schedule-edit           training            login    422      403      403      403      404      404      403      403      403
POST schedule-pause          training            login    302      403      403      403      404      404      403      403      403
GET  schedule-delete         training            login    200      403      403      403      404      404      403      403      403
POST schedule-delete         training            login    302      403      403      403      404      404      403      403      403
GET  job-stop                training            login    200      403      403      403      404      404      403      403      403
POST job-stop                training            login    302      403      403      403      404      404      403      403      403
GET  job-delete              training            login    200      403      403      403      404      404      403      403      403
POST job-delete              training            login    302      403      403      403      404      404      403      403      403
GET  workspace               left-notebook       login    200      200      200      200      200      404      200      200      200
GET  workspace-resume        left-notebook       login    403      403      403      403      200      404      403      403      403
POST workspace-resume        left-notebook       login    403      403      403      403      422      404      403      403      403
POST workspace-delete        left-notebook       login    403      403      403      403      302      404      403      403      403
GET  workspace-resume        viewed-notebook     login    403      403      403      200      404      404      403      403      403
POST workspace-resume        viewed-notebook     login    403      403      403      422      404      404      403      403      403
POST workspace-rename        viewed-notebook     login    403      403      403      302      404      404      403      403      403
GET  workspace               no-such             login    404      404      404      404      404      404      404      404      404
POST workspace-resume        no-such             login    404      404      404      404      404      404      404      404      404

GET  execution               no-such             login    404      404      404      404      404      404      404      404      404
POST execution-stop          no-such             login    404      404      404      404      404      404      404      404      404
POST execution-open          shared-port         login    302      403      403      302      403      403      403      403      403
GET  execution-opening       shared-port         login    302      403      403      302      403      403      403      403      403
POST execution-open          left-port           login    403      403      403      403      403      403      403      403      403
POST execution-open          no-such             login    403      403      403      403      403      403      403      403      403
WS   execution               no-such             login    refused  refused  refused  refused  refused  refused  refused  refused  refused
GET  pod                     no-such             login    403      403      403      403      403      403      404      404      404
GET  pod-log                 no-such             login    403      403      403      403      403      403      404      404      404

GET  overview                                    login    403      403      403      403      403      403      200      200      200
WS   overview                                    login    refused  refused  refused  refused  refused  refused  open     open     open
GET  infrastructure                              login    403      403      403      403      403      403      200      200      200
GET  pool-history                                login    403      403      403      403      403      403      200      200      200
WS   infrastructure                              login    refused  refused  refused  refused  refused  refused  open     open     open
GET  node                    node-a              login    403      403      403      403      403      403      200      200      200
GET  node-cordon             node-a              login    403      403      403      403      403      403      403      200      200
POST node-cordon             node-a              login    403      403      403      403      403      403      403      422      422
GET  node-drain              node-a              login    403      403      403      403      403      403      403      200      200
POST node-drain              node-a              login    403      403      403      403      403      403      403      422      422
WS   node                    node-a              login    refused  refused  refused  refused  refused  refused  open     open     open

GET  startup                                     login    403      403      403      403      403      403      200      200      200
GET  startup-days                                login    403      403      403      403      403      403      200      200      200

GET  tiers                                       login    403      403      403      403      403      403      403      403      200
GET  tier-new                                    login    403      403      403      403      403      403      403      403      200
POST tier-new                                    login    403      403      403      403      403      403      403      403      400
POST tier-new-check                              login    403      403      403      403      403      403      403      403      200
POST tier-check              small               login    403      403      403      403      403      403      403      403      200
GET  tier                    small               login    403      403      403      403      403      403      403      403      200
POST tier                    small               login    403      403      403      403      403      403      403      403      400
GET  tier-archive            small               login    403      403      403      403      403      403      403      403      200
POST tier-archive            small               login    403      403      403      403      403      403      403      403      302
POST tier-revert             small               login    403      403      403      403      403      403      403      403      302
GET  environments                                login    403      403      403      403      403      403      403      403      200
GET  environment-new                             login    403      403      403      403      403      403      403      403      200
POST environment-new                             login    403      403      403      403      403      403      403      403      400
GET  environment             jupyterlab          login    403      403      403      403      403      403      403      403      200
POST environment             jupyterlab          login    403      403      403      403      403      403      403      403      400
GET  environment-archive     jupyterlab          login    403      403      403      403      403      403      403      403      200
POST environment-archive     jupyterlab          login    403      403      403      403      403      403      403      403      302
POST environment-revert      jupyterlab          login    403      403      403      403      403      403      403      403      302
GET  environment-revisions   jupyterlab          login    403      403      403      403      403      403      403      403      200
GET  environment-revision-new jupyterlab          login    403      403      403      403      403      403      403      403      200
POST environment-revision-new jupyterlab          login    403      403      403      403      403      403      403      403      422
GET  environment-revision    jupyterlab          login    403      403      403      403      403      403      403      403      200
GET  environment-revision-deprecate jupyterlab          login    403      403      403      403      403      403      403      403      200
POST environment-revision-deprecate jupyterlab          login    403      403      403      403      403      403      403      403      302
GET  projects                                    login    200      200      200      200      200      200      200      200      200
GET  project-new                                 login    403      403      403      403      403      403      403      403      200
POST project-new                                 login    403      403      403      403      403      403      403      403      400
GET  project                 churn               login    200      200      200      200      404      404      200      200      200
POST project                 churn               login    403      400      403      403      404      404      403      403      400
GET  project-member          churn               login    403      200      403      403      404      404      403      403      200
POST project-member          churn               login    403      302      403      403      404      404      403      403      302
GET  project-budget          churn               login    200      200      200      200      404      404      200      200      200
POST project-budget          churn               login    403      403      403      403      404      404      403      403      302
GET  project-budget          no-such             login    404      404      404      404      404      404      404      404      404
GET  project-secrets         churn               login    200      200      200      403      404      404      403      403      200
POST project-secrets         churn               login    302      302      302      403      404      404      403      403      403
GET  project-secret-delete   churn               login    200      200      200      403      404      404      403      403      200
POST project-secret-delete   churn               login    302      302      302      403      404      404      403      403      302
GET  project-files           churn               login    200      200      200      403      404      404      403      403      403
GET  project-history         churn               login    200      200      200      403      404      404      403      403      403
GET  project-file            churn               login    404      404      404      403      404      404      403      403      403
GET  project-upload          churn               login    200      200      200      403      404      404      403      403      403
POST project-upload          churn               login    422      422      422      403      404      404      403      403      403
GET  project-file-delete     churn               login    404      404      404      403      404      404      403      403      403
POST project-file-delete     churn               login    302      302      302      403      404      404      403      403      403
GET  project-file-move       churn               login    404      404      404      403      404      404      403      403      403
POST project-file-move       churn               login    404      404      404      403      404      404      403      403      403
POST project-push-again      churn               login    302      302      302      403      404      404      403      403      403
GET  project-remote          churn               login    403      200      403      403      404      404      403      403      200
POST project-remote          churn               login    403      422      403      403      404      404      403      403      422
POST project-remote-test     churn               login    403      404      403      403      404      404      403      403      404
POST project-remote-confirm  churn               login    403      302      403      403      404      404      403      403      302
POST project-remote-remove   churn               login    403      302      403      403      404      404      403      403      302
GET  secrets                                     login    200      200      200      200      200      200      200      200      200
POST secrets                                     login    302      302      302      302      302      302      302      302      302
GET  secret-delete           owners-secret       login    200      404      404      404      404      404      404      404      404
POST secret-delete           owners-secret       login    302      404      404      404      404      404      404      404      404
GET  project-archive         churn               login    403      403      403      403      403      403      403      403      200
POST project-archive         churn               login    403      403      403      403      403      403      403      403      302
POST project-revert          churn               login    403      403      403      403      403      403      403      403      302
GET  knowledge                                   login    403      403      403      403      403      403      200      200      200
POST knowledge                                   login    403      403      403      403      403      403      200      200      200
GET  knowledge-found         licence             login    403      403      403      403      403      403      200      200      200
GET  knowledge-entry-new                         login    403      403      403      403      403      403      403      403      200
POST knowledge-entry-new                         login    403      403      403      403      403      403      403      403      400
GET  knowledge-entry         licence             login    403      403      403      403      403      403      403      403      200
POST knowledge-entry         licence             login    403      403      403      403      403      403      403      403      400
GET  knowledge-entry-archive licence             login    403      403      403      403      403      403      403      403      200
POST knowledge-entry-archive licence             login    403      403      403      403      403      403      403      403      302
POST knowledge-entry-revert  licence             login    403      403      403      403      403      403      403      403      302
GET  configuration                               login    403      403      403      403      403      403      403      403      200
POST configuration                               login    403      403      403      403      403      403      403      403      302
GET  people                                      login    403      403      403      403      403      403      403      403      200
GET  person-invite                               login    403      403      403      403      403      403      403      403      200
POST person-invite                               login    403      403      403      403      403      403      403      403      400
GET  person                  stranger            login    403      403      403      403      403      403      403      403      200
GET  person-role             stranger            login    403      403      403      403      403      403      403      403      200
POST person-role             stranger            login    403      403      403      403      403      403      403      403      302
GET  person-link             stranger            login    403      403      403      403      403      403      403      403      200
POST person-link             stranger            login    403      403      403      403      403      403      403      403      200
GET  person-deactivate       stranger            login    403      403      403      403      403      403      403      403      200
POST person-deactivate       stranger            login    403      403      403      403      403      403      403      403      302
POST person-activate         stranger            login    403      403      403      403      403      403      403      403      302
POST person-sessions-end     stranger            login    403      403      403      403      403      403      403      403      302
GET  announcements                               login    403      403      403      403      403      403      403      200      200
GET  announcement-new                            login    403      403      403      403      403      403      403      200      200
POST announcement-new                            login    403      403      403      403      403      403      403      302      302
GET  announcement            upgrade             login    403      403      403      403      403      403      403      200      200
POST announcement            upgrade             login    403      403      403      403      403      403      403      400      400
GET  announcement-end        upgrade             login    403      403      403      403      403      403      403      200      200
POST announcement-end        upgrade             login    403      403      403      403      403      403      403      302      302
POST announcement-hide                           login    302      302      302      302      302      302      302      302      302
GET  audit-log                                   login    403      403      403      403      403      403      200      403      200
GET  audit-export                                login    403      403      403      403      403      403      200      403      200
GET  logins                                      login    403      403      403      403      403      403      403      403      200
POST login-unlock                                login    403      403      403      403      403      403      403      403      302
GET  components                                  login    403      403      403      403      403      403      403      403      200
GET  demonstration                               login    403      403      403      403      403      403      403      403      200
POST demonstration-size                          login    403      403      403      403      403      403      403      403      302
POST demonstration-failure                       login    403      403      403      403      403      403      403      403      302

GET  proxy:/__grid__/healthz                     200      200      200      200      200      200      200      200      200      200
GET  proxy:/__grid__/readyz                      200      200      200      200      200      200      200      200      200      200
GET  proxy:/                                     403      403      403      403      403      403      403      403      403      403
GET  proxy:/w/neverwas22/lab                     303      303      303      303      303      303      303      303      303      303
GET  proxy:/__grid__/begin   workspace           303      303      303      303      303      303      303      303      303      303
GET  proxy:/__grid__/begin   no-such             303      303      303      303      303      303      303      303      303      303
GET  proxy:/__grid__/open    workspace           403      303      403      403      403      403      403      403      403      403
GET  proxy:/__grid__/worker  workspace           403      200      403      403      403      403      403      403      403      403
GET  proxy:/lab              workspace           403      200      403      403      403      403      403      403      403      403
POST proxy:/api/contents     workspace           403      200      403      403      403      403      403      403      403      403
WS   proxy:/api/kernels      workspace           refused  open     refused  refused  refused  refused  refused  refused  refused  refused
GET  proxy:/                 shared-port         403      200      403      403      200      403      403      403      403      403
POST proxy:/run              shared-port         403      200      403      403      200      403      403      403      403      403
WS   proxy:/_stcore/stream   shared-port         refused  open     refused  refused  open     refused  refused  refused  refused  refused
GET  proxy:/                 left-port           403      403      403      403      403      403      403      403      403      403
GET  proxy:/app              app                 403      200      403      403      200      403      403      403      403      403
WS   proxy:/app              app                 refused  open     refused  refused  open     refused  refused  refused  refused  refused
GET  proxy:/status           cluster             403      200      200      200      403      403      403      403      403      403
POST proxy:/status           cluster             403      200      200      200      403      403      403      403      403      403
WS   proxy:/status/ws        cluster             refused  open     open     open     refused  refused  refused  refused  refused  refused
GET  proxy:/lab              left-workspace      403      403      403      403      403      403      403      403      403      403
POST proxy:/api/contents     left-workspace      403      403      403      403      403      403      403      403      403      403
WS   proxy:/api/kernels      left-workspace      refused  refused  refused  refused  refused  refused  refused  refused  refused  refused
GET  proxy:/status           left-cluster        403      200      200      200      403      403      403      403      403      403
WS   proxy:/status/ws        left-cluster        refused  open     open     open     refused  refused  refused  refused  refused  refused
GET  proxy:/lab              viewed-workspace    403      403      403      403      403      403      403      403      403      403
POST proxy:/api/contents     viewed-workspace    403      403      403      403      403      403      403      403      403      403
WS   proxy:/api/kernels      viewed-workspace    refused  refused  refused  refused  refused  refused  refused  refused  refused  refused
WS   proxy:/status/ws        viewed-cluster      refused  open     open     open     refused  refused  refused  refused  refused  refused
GET  proxy:/status           viewed-cluster      403      200      200      200      403      403      403      403      403      403
GET  proxy:/__grid__/auth    workspace           401      200      401      401      401      401      401      401      401      401
GET  proxy:/__grid__/auth    app                 401      200      401      401      200      401      401      401      401      401
GET  proxy:/__grid__/auth    no-such             401      401      401      401      401      401      401      401      401      401
GET  proxy:/__grid__/auth    left-workspace      401      401      401      401      401      401      401      401      401      401
GET  proxy:/__grid__/auth    viewed-workspace    401      401      401      401      401      401      401      401      401      401
GET  proxy:/lab              no-such             403      403      403      403      403      403      403      403      403      403

GET  admin/login/                                login    403      403      403      403      403      403      403      403      403
GET  admin/password_change/                      login    302      302      302      302      302      302      302      302      302
GET  admin:logout                                login    302      302      302      302      302      302      302      302      405
POST admin:logout                                login    302      302      302      302      302      302      302      302      login
GET  admin:*                                     login    login    login    login    login    login    login    login    login    in
POST admin:*                                     login    login    login    login    login    login    login    login    login    in
"""


@dataclass(frozen=True, slots=True)
class Row:
    """`route` is the name of an address, its path where it has no name, or `namespace:*` for the rest of a namespace."""

    method: str
    route: str
    target: str
    answers: dict[str, str]

    def __str__(self) -> str:
        return " ".join(filter(None, (self.method, self.route, self.target)))


def rows(table: str = TABLE) -> list[Row]:
    """What has no target has one column less before the answers."""
    header, *lines = [line.split() for line in table.splitlines() if line.strip()]
    assert tuple(header) == ROLES
    return [_row(line) for line in lines]


def _row(line: list[str]) -> Row:
    method, route, *rest = line
    target, answers = rest[: -len(ROLES)], rest[-len(ROLES) :]
    assert len(target) <= 1, line
    return Row(method, route, "".join(target), dict(zip(ROLES, answers, strict=True)))


ROWS = rows()
