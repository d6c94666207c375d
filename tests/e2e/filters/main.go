// Filters reports what kube-scheduler's own plugins say about pending pods.
//
// It reads one cluster per line, as JSON with raw Kubernetes objects, and writes one line per cluster: for each pending
// pod and each node the names of all plugins of the default profile that refuse the pod there. Every plugin is asked,
// also after another one has refused; whether any refuses is checked against the scheduler's own way of running them.
// Pods are defaulted and completed as kube-apiserver does when they are created.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// cluster is one line of input.
type cluster struct {
	Nodes                  []*v1.Node                      `json:"nodes"`
	Pods                   []*v1.Pod                       `json:"pods"`
	Pending                []*v1.Pod                       `json:"pending"`
	Namespaces             []*v1.Namespace                 `json:"namespaces"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments"`
}

// answer names the plugins that refuse a pod on a node, sorted.
type answer struct {
	Pod     string   `json:"pod"`
	Node    string   `json:"node"`
	Refused []string `json:"refused"`
}

// scheduler is kube-scheduler's framework over one cluster.
type scheduler struct {
	framework  framework.Framework
	nodes      []fwk.NodeInfo
	promised   nominator
	named      map[string]fwk.Plugin
	preFilters []string
	filters    []string
}

func main() {
	gates := flag.String("feature-gates", "", "feature gates, as kube-scheduler takes them")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	if err := utilfeature.DefaultMutableFeatureGate.Set(*gates); err != nil {
		fail(err)
	}
	metrics.Register()
	profile, err := defaultProfile()
	if err != nil {
		fail(err)
	}
	if err := answerAll(os.Stdin, os.Stdout, profile); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func answerAll(input io.Reader, output io.Writer, profile *config.KubeSchedulerProfile) error {
	lines, writer := bufio.NewReaderSize(input, 1<<20), bufio.NewWriter(output)
	for number := 1; ; number++ {
		line, ending := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			answered, err := answerLine(line, profile)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			if _, err := writer.Write(append(answered, '\n')); err != nil {
				return err
			}
		}
		if errors.Is(ending, io.EOF) {
			return writer.Flush()
		}
		if ending != nil {
			return ending
		}
	}
}

func answerLine(line []byte, profile *config.KubeSchedulerProfile) ([]byte, error) {
	var read cluster
	if err := json.Unmarshal(line, &read); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked, err := newScheduler(ctx, &read, profile)
	if err != nil {
		return nil, err
	}
	answers := []answer{}
	for _, pod := range read.Pending {
		found, err := asked.answers(ctx, pod)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", klog.KObj(pod), err)
		}
		answers = append(answers, found...)
	}
	return json.Marshal(map[string]any{"answers": answers})
}

// newScheduler fills informers that never run: the plugins only read what is in their indexers.
func newScheduler(ctx context.Context, read *cluster, profile *config.KubeSchedulerProfile) (*scheduler, error) {
	for _, pod := range slices.Concat(read.Pods, read.Pending) {
		if err := admit(pod); err != nil {
			return nil, err
		}
	}
	// The scheduler's informer has no pods that have ended, and its snapshots no nodes that are only known from pods.
	known := sets.New[string]()
	for _, node := range read.Nodes {
		known.Insert(node.Name)
	}
	read.Pods = slices.DeleteFunc(read.Pods, func(pod *v1.Pod) bool {
		return hasEnded(pod) || !known.Has(pod.Spec.NodeName)
	})
	promised, err := newNominator(slices.DeleteFunc(slices.Clone(read.Pending), hasEnded))
	if err != nil {
		return nil, err
	}
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	fill(factory.Core().V1().Nodes().Informer(), read.Nodes)
	fill(factory.Core().V1().Pods().Informer(), read.Pods)
	fill(factory.Core().V1().Namespaces().Informer(), read.Namespaces)
	fill(factory.Core().V1().PersistentVolumeClaims().Informer(), read.PersistentVolumeClaims)
	fill(factory.Core().V1().PersistentVolumes().Informer(), read.PersistentVolumes)
	fill(factory.Storage().V1().StorageClasses().Informer(), read.StorageClasses)
	fill(factory.Storage().V1().CSINodes().Informer(), read.CSINodes)
	fill(factory.Storage().V1().CSIDrivers().Informer(), read.CSIDrivers)
	fill(factory.Storage().V1().CSIStorageCapacities().Informer(), read.CSIStorageCapacities)
	fill(factory.Storage().V1().VolumeAttachments().Informer(), read.VolumeAttachments)

	logger := klog.FromContext(ctx)
	resources := factory.Resource().V1()
	tracked := tracker.Options{SliceInformer: resources.ResourceSlices(), KubeClient: client}
	devices, err := tracker.StartTracker(ctx, tracked)
	if err != nil {
		return nil, err
	}
	claims := assumecache.NewAssumeCache(logger, resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	csiNodes := nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())
	snapshot := schedulercache.NewSnapshot(read.Pods, read.Nodes)
	made := &scheduler{promised: promised, named: map[string]fwk.Plugin{}}
	made.framework, err = frameworkruntime.NewFramework(ctx, made.registry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithPodNominator(promised),
		frameworkruntime.WithSharedCSIManager(csiNodes),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, devices, factory)),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1, time.Hour, ctx.Done())),
	)
	if err != nil {
		return nil, err
	}
	enabled := made.framework.ListPlugins()
	for _, plugin := range enabled.PreFilter.Enabled {
		made.preFilters = append(made.preFilters, plugin.Name)
	}
	for _, plugin := range enabled.Filter.Enabled {
		made.filters = append(made.filters, plugin.Name)
	}
	for _, node := range read.Nodes {
		info, err := snapshot.Get(node.Name)
		if err != nil {
			return nil, err
		}
		made.nodes = append(made.nodes, info)
	}
	return made, nil
}

// registry makes the plugins as kube-scheduler does, and remembers them by name.
func (s *scheduler) registry() frameworkruntime.Registry {
	registry := plugins.NewInTreeRegistry()
	for name, factory := range registry {
		registry[name] = func(ctx context.Context, arguments apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			made, err := factory(ctx, arguments, handle)
			s.named[name] = made
			return made, err
		}
	}
	return registry
}

// answers asks every plugin about a pod on every node.
func (s *scheduler) answers(ctx context.Context, pod *v1.Pod) ([]answer, error) {
	everywhere, skipped := sets.New[string](), sets.New[string]()
	for _, plugin := range s.framework.PreEnqueuePlugins() {
		if !plugin.PreEnqueue(ctx, pod).IsSuccess() {
			everywhere.Insert(plugin.Name())
		}
	}
	gated := len(everywhere) > 0
	state := framework.NewCycleState()
	wanted := map[string]sets.Set[string]{}
	for _, name := range s.preFilters {
		result, status := s.named[name].(fwk.PreFilterPlugin).PreFilter(ctx, state, pod, s.nodes)
		switch {
		case status.IsSkip():
			skipped.Insert(name)
		case !status.IsSuccess():
			everywhere.Insert(name)
		case !result.AllNodes():
			wanted[name] = result.NodeNames
		}
	}
	whole := framework.NewCycleState()
	result, preFiltered, _ := s.framework.RunPreFilterPlugins(ctx, whole, pod)
	answers := []answer{}
	for _, node := range s.nodes {
		name := node.Node().Name
		refused := everywhere.Clone()
		for plugin, nodes := range wanted {
			if !nodes.Has(name) {
				refused.Insert(plugin)
			}
		}
		asked := sets.New(s.filters...).Difference(skipped).Difference(refused)
		refused = refused.Union(s.filter(ctx, state, pod, node, asked))
		if promised := s.promised.before(pod, name); len(promised) > 0 {
			crowded, after := node.Snapshot(), state.Clone()
			if err := s.add(ctx, after, pod, crowded, promised, skipped.Union(everywhere)); err != nil {
				return nil, err
			}
			refused = refused.Union(s.filter(ctx, after, pod, crowded, asked))
		}
		fits := !gated && preFiltered.IsSuccess() && (result.AllNodes() || result.NodeNames.Has(name)) &&
			s.framework.RunFilterPluginsWithNominatedPods(ctx, whole, pod, node).IsSuccess()
		if fits != (len(refused) == 0) {
			return nil, fmt.Errorf("node %s: fits by the framework: %t, refused by %v", name, fits, sets.List(refused))
		}
		answers = append(answers, answer{klog.KObj(pod).String(), name, sets.List(refused)})
	}
	return answers, nil
}

// filter returns which of some plugins refuse a pod on a node.
func (s *scheduler) filter(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, asked sets.Set[string],
) sets.Set[string] {
	refused := sets.New[string]()
	for name := range asked {
		if !s.named[name].(fwk.FilterPlugin).Filter(ctx, state, pod, node).IsSuccess() {
			refused.Insert(name)
		}
	}
	return refused
}

// add puts pods on a node before a pod is tried there; plugins that have no state from PreFilter are left out.
func (s *scheduler) add(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, added []fwk.PodInfo,
	stateless sets.Set[string],
) error {
	for _, other := range added {
		node.AddPodInfo(other)
		for _, name := range s.preFilters {
			extensions := s.named[name].(fwk.PreFilterPlugin).PreFilterExtensions()
			if extensions == nil || stateless.Has(name) {
				continue
			}
			if status := extensions.AddPod(ctx, state, pod, other, node); !status.IsSuccess() {
				return fmt.Errorf("%s: %w", name, status.AsError())
			}
		}
	}
	return nil
}

// nominator has the pending pods to which preemption has promised a node, by the name of the node.
type nominator map[string][]fwk.PodInfo

func newNominator(pending []*v1.Pod) (nominator, error) {
	promised := nominator{}
	for _, pod := range pending {
		node := pod.Status.NominatedNodeName
		if node == "" {
			continue
		}
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			return nil, err
		}
		promised[node] = append(promised[node], info)
	}
	return promised, nil
}

// before returns the pods to which a pod must yield on a node.
func (n nominator) before(pod *v1.Pod, node string) []fwk.PodInfo {
	found := []fwk.PodInfo{}
	for _, info := range n[node] {
		if info.GetPod().UID != pod.UID && corev1.PodPriority(info.GetPod()) >= corev1.PodPriority(pod) {
			found = append(found, info)
		}
	}
	return found
}

func (n nominator) NominatedPodsForNode(name string) []fwk.PodInfo { return n[name] }

// The scheduler's framework only reads: nothing is bound and no pod is preempted.
func (n nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (n nominator) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (n nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}

// admit changes a pod as kube-apiserver does before it stores one, but leaves its status.
func admit(pod *v1.Pod) error {
	legacyscheme.Scheme.Default(pod)
	var stored core.Pod
	if err := legacyscheme.Scheme.Convert(pod, &stored, nil); err != nil {
		return err
	}
	status := pod.Status
	podregistry.Strategy.PrepareForCreate(context.Background(), &stored)
	if err := legacyscheme.Scheme.Convert(&stored, pod, nil); err != nil {
		return err
	}
	pod.Status = status
	if pod.UID == "" {
		pod.UID = types.UID(klog.KObj(pod).String())
	}
	return nil
}

func hasEnded(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// fill puts objects into an informer that does not run, with the defaults of kube-apiserver.
func fill[T apiruntime.Object](informer cache.SharedIndexInformer, objects []T) {
	for _, object := range objects {
		legacyscheme.Scheme.Default(object)
		if err := informer.GetIndexer().Add(object); err != nil {
			panic(err) // Only objects without metadata are refused.
		}
	}
}

func defaultProfile() (*config.KubeSchedulerProfile, error) {
	var versioned configv1.KubeSchedulerConfiguration
	configscheme.Scheme.Default(&versioned)
	var complete config.KubeSchedulerConfiguration
	if err := configscheme.Scheme.Convert(&versioned, &complete, nil); err != nil {
		return nil, err
	}
	return &complete.Profiles[0], nil
}
