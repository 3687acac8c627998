package main

// Trying pods: the scheduler's own cycle (schedule_one.go), except that every node is looked at and every score kept.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// Result is what became of one pod.
type Result struct {
	Pod          string           `json:"pod"`
	Outcome      string           `json:"outcome"`
	Nodes        map[string]*Node `json:"nodes,omitempty"`
	Feasible     []string         `json:"feasible,omitempty"`
	Best         []string         `json:"best,omitempty"`
	Selected     string           `json:"selected,omitempty"`
	ByNomination bool             `json:"byNomination,omitempty"`
	PreFilter    *Refusal         `json:"preFilter,omitempty"`
	Gated        *Refusal         `json:"gated,omitempty"`
	Reserve      *Refusal         `json:"reserve,omitempty"`
	Message      string           `json:"message,omitempty"`
	Error        string           `json:"error,omitempty"`
}

// Refusal is a status that is not Success.
type Refusal struct {
	Status  string   `json:"status"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// Node is the verdict on one node.
type Node struct {
	Refusal
	Scores map[string]int64 `json:"scores,omitempty"`
	Total  *int64           `json:"total,omitempty"`
}

type entry struct {
	pod  *corev1.Pod
	name string
}

// trial is a scheduler on the snapshot of one request.
type trial struct {
	sched    *scheduler.Scheduler
	pods     *fixed
	entries  []entry
	known    map[string]*corev1.Pod
	placed   map[string]bool
	warnings *[]string
}

func full(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func newTrial(ctx context.Context, request *Request, warnings *[]string) (*trial, error) {
	w, err := read(request.Objects, request.Normalized, warnings)
	if err != nil {
		return nil, err
	}
	t := &trial{known: map[string]*corev1.Pod{}, placed: map[string]bool{}, warnings: warnings}
	for _, pod := range w.pods {
		t.known[full(pod)] = pod
		t.placed[full(pod)] = pod.Spec.NodeName != ""
	}
	tried, err := t.readEntries(w, request)
	if err != nil {
		return nil, err
	}
	objects := append(append([]runtime.Object{}, w.objects...), w.namespaces(tried)...)
	for _, pod := range w.pods {
		objects = append(objects, pod)
	}
	settings, err := t.settings(request.Config)
	if err != nil {
		return nil, err
	}
	factory, informers := newFactory(objects)
	t.pods = informers[reflect.TypeOf(&corev1.Pod{})]
	everyNode := int32(100)
	for index := range settings.Profiles {
		settings.Profiles[index].PercentageOfNodesToScore = nil
	}
	t.sched, err = scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithComponentConfigVersion(settings.APIVersion),
		scheduler.WithProfiles(settings.Profiles...),
		scheduler.WithParallelism(1),
		scheduler.WithPercentageOfNodesToScore(&everyNode),
	)
	return t, err
}

func (t *trial) close() {
	t.sched.SchedulingQueue.Close()
	for _, profile := range t.sched.Profiles {
		_ = profile.Close()
	}
}

// readEntries reads the pods to try; returns those that are written out.
func (t *trial) readEntries(w *world, request *Request) ([]*corev1.Pod, error) {
	raw := request.Pods
	if len(request.Pod) > 0 && string(request.Pod) != "null" {
		raw = append([]json.RawMessage{request.Pod}, raw...)
	}
	if len(raw) == 0 {
		return nil, errors.New("pod: is missing")
	}
	var written []*corev1.Pod
	for index, each := range raw {
		var name string
		if json.Unmarshal(each, &name) == nil {
			t.entries = append(t.entries, entry{name: name})
			continue
		}
		pod, err := w.incoming(each, fmt.Sprintf("pods[%d]", index))
		if err != nil {
			return nil, err
		}
		written = append(written, pod)
		t.entries = append(t.entries, entry{pod: pod, name: full(pod)})
	}
	return written, nil
}

// settings are those of the request, else the default profile under the name that the first pod asks for.
func (t *trial) settings(raw json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if len(raw) > 0 && string(raw) != "null" {
		fields := map[string]any{}
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		fields["apiVersion"], fields["kind"] = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
		encoded, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		object, _, err := configscheme.Codecs.UniversalDecoder().Decode(encoded, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		settings := object.(*config.KubeSchedulerConfiguration)
		settings.APIVersion = "kubescheduler.config.k8s.io/v1"
		return settings, nil
	}
	settings, err := latest.Default()
	if err != nil {
		return nil, err
	}
	first := t.entries[0].pod
	if first == nil {
		first = t.known[t.entries[0].name]
	}
	if first != nil {
		settings.Profiles[0].SchedulerName = first.Spec.SchedulerName
	}
	return settings, nil
}

func (t *trial) runAll(ctx context.Context, results *[]*Result) error {
	for _, each := range t.entries {
		pod := each.pod
		if pod == nil {
			pod = t.known[each.name]
		}
		if pod == nil {
			return fmt.Errorf("pods: there is no pod %s", each.name)
		}
		result := &Result{Pod: full(pod)}
		*results = append(*results, result)
		if t.placed[full(pod)] {
			result.Outcome = "placed"
			continue
		}
		if t.known[full(pod)] == nil {
			t.known[full(pod)] = pod
			t.arrive(pod)
		}
		t.try(ctx, pod, result)
	}
	return nil
}

// arrive lets the pod reach the queue, where its nomination counts from now on.
func (t *trial) arrive(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		t.pods.add(pod)
		return
	}
	// A wish for a node; to the informer's handlers it would be a pod that is bound.
	if err := t.pods.indexer.Add(pod); err != nil {
		panic(err)
	}
}

func (t *trial) try(ctx context.Context, pod *corev1.Pod, result *Result) {
	if pod.DeletionTimestamp != nil {
		result.Outcome = "deleting"
		return
	}
	profile := t.sched.Profiles[pod.Spec.SchedulerName]
	if profile == nil {
		result.fail(fmt.Errorf("profile not found for scheduler name %q", pod.Spec.SchedulerName))
		return
	}
	for _, plugin := range profile.PreEnqueuePlugins() {
		if plugin.Name() == names.DefaultPreemption {
			continue
		}
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			result.Outcome = "gated"
			result.Gated = refusal(status.WithPlugin(plugin.Name()))
			return
		}
	}
	snapshot := profile.SnapshotSharedLister().(*cache.Snapshot)
	if err := t.sched.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		result.fail(err)
		return
	}
	state := framework.NewCycleState()
	cycle := &cycle{profile: profile, snapshot: snapshot, state: state, pod: pod, result: result}
	if err := cycle.run(ctx); err != nil {
		result.fail(err)
	}
	if checked {
		t.check(ctx, profile, pod, result)
	}
	if result.Selected != "" {
		t.assume(ctx, profile, state, pod, result)
	}
}

// check panics where the scheduler's own way through a cycle ends elsewhere than ours.
func (t *trial) check(ctx context.Context, profile framework.Framework, pod *corev1.Pod, result *Result) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		panic(err)
	}
	found, err := t.sched.SchedulePod(ctx, profile, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	switch {
	case err == nil && result.ByNomination && found.SuggestedHost == result.Selected:
	case err == nil && !result.ByNomination && slices.Contains(result.Best, found.SuggestedHost):
	case err != nil && result.Outcome == "unschedulable" && err.Error() == result.Message:
	case err != nil && result.Outcome == "error" && err.Error() == result.Error:
	default:
		panic(fmt.Sprintf("%s: SchedulePod says %q %v, this %q %v %q",
			full(pod), found.SuggestedHost, err, result.Outcome, result.Best, result.Message+result.Error))
	}
}

func (r *Result) fail(err error) {
	*r = Result{Pod: r.Pod, Outcome: "error", Error: err.Error()}
}

// assume puts the pod on its node as the scheduler does, and runs Reserve.
func (t *trial) assume(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *corev1.Pod, result *Result) {
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = result.Selected
	logger := klog.FromContext(ctx)
	if err := t.sched.Cache.AssumePod(logger, assumed); err != nil {
		result.fail(err)
		return
	}
	t.sched.SchedulingQueue.DeleteNominatedPodIfExists(assumed)
	status := profile.RunReservePluginsReserve(ctx, state, assumed, result.Selected)
	if status.IsSuccess() {
		t.placed[full(pod)] = true
		return
	}
	result.Reserve = refusal(status)
	profile.RunReservePluginsUnreserve(ctx, state, assumed, result.Selected)
	if err := t.sched.Cache.ForgetPod(logger, assumed); err != nil {
		result.fail(err)
	}
}

// cycle is one pod's way through PreFilter, Filter and Score.
type cycle struct {
	profile  framework.Framework
	snapshot *cache.Snapshot
	state    fwk.CycleState
	pod      *corev1.Pod
	result   *Result
}

func (c *cycle) run(ctx context.Context) error {
	all, err := c.snapshot.NodeInfos().List()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		c.result.Outcome, c.result.Message = "unschedulable", scheduler.ErrNoNodesAvailable.Error()
		return nil
	}
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	passed, err := c.filter(ctx, all, &diagnosis)
	if err != nil {
		return err
	}
	c.result.Nodes = map[string]*Node{}
	for _, info := range all {
		name := info.Node().Name
		if !passed.Has(name) {
			c.result.Nodes[name] = &Node{Refusal: *refusal(diagnosis.NodeToStatus.Get(name))}
		}
	}
	if len(passed) == 0 {
		c.result.Outcome = "unschedulable"
		failed := framework.FitError{Pod: c.pod, NumAllNodes: len(all), Diagnosis: diagnosis}
		c.result.Message = failed.Error()
		return nil
	}
	feasible := make([]fwk.NodeInfo, 0, len(passed))
	for _, info := range all {
		if passed.Has(info.Node().Name) {
			feasible = append(feasible, info)
		}
	}
	return c.score(ctx, feasible)
}

// filter gives the names of the nodes that pass; the others get their status in the diagnosis.
func (c *cycle) filter(ctx context.Context, all []fwk.NodeInfo, diagnosis *framework.Diagnosis) (sets.Set[string], error) {
	passed := sets.New[string]()
	narrowed, status, plugins := c.profile.RunPreFilterPlugins(ctx, c.state, c.pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, status.AsError()
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		c.result.PreFilter = refusal(status)
		return passed, nil
	}
	// The scheduler puts what refuses the nominated node into this very set, which then names it for other nodes too.
	diagnosis.UnschedulablePlugins = plugins
	look := func(info fwk.NodeInfo) error {
		status := c.profile.RunFilterPluginsWithNominatedPods(ctx, c.state, c.pod, info)
		switch {
		case status.Code() == fwk.Error:
			return status.AsError()
		case status.IsSuccess():
			passed.Insert(info.Node().Name)
		default:
			diagnosis.NodeToStatus.Set(info.Node().Name, status)
			diagnosis.AddPluginStatus(status)
		}
		return nil
	}
	if nominated, err := c.snapshot.Get(c.pod.Status.NominatedNodeName); err == nil {
		// The scheduler only logs an error here and goes on.
		_ = look(nominated)
	}
	if !narrowed.AllNodes() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins))))
	}
	for _, info := range all {
		if narrowed.AllNodes() || narrowed.NodeNames.Has(info.Node().Name) {
			if err := look(info); err != nil {
				return nil, err
			}
		}
	}
	return passed, nil
}

// score scores the nodes, also where there is one or where a nomination settles it.
func (c *cycle) score(ctx context.Context, feasible []fwk.NodeInfo) error {
	result := c.result
	result.Outcome = "scheduled"
	for _, info := range feasible {
		result.Feasible = append(result.Feasible, info.Node().Name)
	}
	sort.Strings(result.Feasible)
	nominated := c.pod.Status.NominatedNodeName
	result.ByNomination = nominated != "" && sets.New(result.Feasible...).Has(nominated)
	status := c.profile.RunPreScorePlugins(ctx, c.state, c.pod, feasible)
	var scored []fwk.NodePluginScores
	if status.IsSuccess() {
		scored, status = c.profile.RunScorePlugins(ctx, c.state, c.pod, feasible)
	}
	if !status.IsSuccess() && !result.ByNomination && len(feasible) > 1 {
		return status.AsError()
	}
	var top int64
	for _, each := range scored {
		total := each.TotalScore
		verdict := &Node{Refusal: Refusal{Status: fwk.Success.String()}, Scores: map[string]int64{}, Total: &total}
		for _, part := range each.Scores {
			verdict.Scores[part.Name] = part.Score
		}
		result.Nodes[each.Name] = verdict
		if result.Best == nil || total > top {
			top, result.Best = total, nil
		}
		if total == top {
			result.Best = append(result.Best, each.Name)
		}
	}
	if len(scored) == 0 {
		// Scoring failed where the scheduler would not have scored.
		result.Best = append(result.Best, result.Feasible...)
		for _, name := range result.Feasible {
			result.Nodes[name] = &Node{Refusal: Refusal{Status: fwk.Success.String()}}
		}
	}
	sort.Strings(result.Best)
	result.Selected = result.Best[0]
	if result.ByNomination {
		result.Selected = nominated
	}
	return nil
}

func refusal(status *fwk.Status) *Refusal {
	reasons := append([]string{}, status.Reasons()...)
	sort.Strings(reasons)
	return &Refusal{Status: status.Code().String(), Plugin: status.Plugin(), Reasons: reasons}
}
